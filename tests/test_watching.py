"""Episodes to be watched: what is recorded, drawn and shown. Most are made by hand, so nothing is compiled for them."""

import io
import os

import numpy as np
import pytest
from PIL import Image, ImageDraw
from untrained_runs import signs, untrained

from iqrl.envs.base import Task
from iqrl.envs.registry import make_task
from iqrl.errors import BadInput
from iqrl.make_run import resolve
from iqrl.watching.episode import Episode, Moment, in_one_range, record
from iqrl.watching.frames import CONTEXTS, MARGIN, WIDTH, make_film
from iqrl.watching.pictures import Variables, draw_image, draw_variables
from iqrl.watching.showing import open_window, write_film
from iqrl.watching.terminal import STYLE, in_characters, play_in_terminal, screen

RUN = resolve("CartPole-v0", "iq", steps=1000)


def episode(length, over=True, contexts=1, pace=50.0):
    """The picture grows brighter with every step; the second action is the best; contexts follow one another."""
    moments = [
        Moment(np.full((20, 30, 3), 2 * i, np.uint8), np.array([1.0, 2.0]), i % contexts, 1, float(i))
        for i in range(length)
    ]
    return Episode(RUN, 7280, contexts, moments, over, pace)


def test_what_is_recorded():
    result = untrained(task=signs())
    seen = record(result, seed=1, start=3, longest=10)
    assert len(seen.moments) == 2  # an episode of one step, and its end
    assert (seen.over, seen.limited, seen.contexts, seen.memory) == (True, False, 1, result.memory)
    first, last = seen.moments
    assert abs(seen.total) == 1
    assert first.action == result.agents[1].predict(np.array([seen.total]))
    np.testing.assert_allclose(first.q_values, result.agents[1].q_values(np.array([seen.total])))
    assert last.action is None
    assert first.picture.shape == (200, 300, 3)
    with pytest.raises(BadInput, match="the run has no seed 7; it has seeds 0 to 1"):
        record(result, seed=7)


def test_moments_are_left_out_where_the_environment_is_fast():
    film = make_film([episode(101)])
    assert film.frames_a_second == 25
    assert len(film.frames) == 51 + int(1.5 * 25)  # every other one, and the last stays
    assert make_film([episode(101)], frames_a_second=10).frames_a_second == 10


def test_agents_are_side_by_side_and_one_that_is_over_stays_as_it_ended():
    film = make_film([episode(5), episode(60, over=False)])
    assert film.frames[0].width == 2 * (WIDTH + 2 * MARGIN)
    halves = [np.asarray(film.frames[i])[:, : WIDTH + 2 * MARGIN] for i in (10, -1)]
    np.testing.assert_array_equal(*halves)
    rest = [np.asarray(film.frames[i])[:, WIDTH + 2 * MARGIN :] for i in (10, -1)]
    assert (rest[0] != rest[1]).any()


def test_contexts_are_a_coloured_strip():
    colours = lambda film: {colour for _, colour in film.frames[-1].getcolors(2**20)}
    in_bytes = {tuple(bytes.fromhex(colour[1:])) for colour in CONTEXTS[:3]}
    assert in_bytes <= colours(make_film([episode(20, contexts=3)]))
    assert not in_bytes & colours(make_film([episode(20)]))


def test_the_better_action_has_the_longer_bar_and_the_colour_of_the_choice():
    frame = np.asarray(make_film([episode(3, over=False)]).frames[0])
    chosen = (frame == (11, 93, 133)).all(axis=2)
    other = (frame == (182, 194, 207)).all(axis=2)
    assert chosen.any(axis=0).sum() > other.any(axis=0).sum() > 0


def test_files(tmp_path):
    film = make_film([episode(30)])
    write_film(film, tmp_path / "a.gif")
    with Image.open(tmp_path / "a.gif") as gif:
        assert gif.size == film.frames[0].size
        assert gif.n_frames > 10
        assert gif.info["duration"] == 40
    with pytest.raises(BadInput, match=r"a\.png is neither a GIF nor an MP4; end its name with \.gif or \.mp4"):
        write_film(film, tmp_path / "a.png")
    pytest.importorskip("cv2")
    write_film(film, tmp_path / "a.mp4")
    assert (tmp_path / "a.mp4").read_bytes()[4:8] == b"ftyp"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.gif", "a.mp4"]


def test_the_terminal():
    film, waits, written = make_film([episode(4)]), [], io.StringIO()
    play_in_terminal(film, written, 40, 12, waits.append)
    assert waits == [1 / 25] * len(film.frames)
    assert "over after 3 steps" in written.getvalue()
    lines = in_characters(Image.new("RGB", (40, 20), (1, 2, 3)), 20, 12)
    assert len(lines) == 5
    assert lines[0] == "\x1b[38;2;1;2;3;48;2;1;2;3m▀" * 20 + "\x1b[0m"


def on_screen(*episodes, index=0, columns=40, rows=20):
    """The lines of one moment, without colours."""
    return [STYLE.sub("", line) for line in screen(make_film(episodes).panels, index, columns, rows)]


def test_the_terminal_has_bars_with_their_values_and_scale():
    lines = on_screen(episode(4, contexts=3))
    assert lines[-6:] == [
        "IQ, N = 100            7.28 kB of memory",
        "return 0                          step 0",
        "  Q left  ██▉                          1",
        "> Q right ██████████████████████       2",
        "bars from 0.85 to 2                     ",
        "context 0  ███████                      ",
    ]
    assert "context 2  █████████████████████        " in on_screen(episode(4, contexts=3), index=2)[-1]


def test_the_terminal_cuts_nothing_that_is_written():
    """Two agents in 80 columns, one of them with many actions; then fewer columns than a line needs."""
    values = np.linspace(-1.0, 1.0, 18)
    moments = [Moment(np.zeros((20, 30, 3), np.uint8), values, 0, 17, 0.0)]
    many = Episode(resolve("Acrobot-v1", "local-q", steps=1000), 7280, 1, moments, False, 50.0)
    lines = on_screen(episode(4), many, columns=80, rows=22)
    assert {len(line) for line in lines} == {80}
    assert len(lines) <= 22
    text = "\n".join(lines)
    assert all(f"Q {action} " in text for action in range(18))
    words = " ".join(line[41:] for line in lines)
    assert "bars from −1.3 to 1; Q in scaled" in words
    narrow = on_screen(episode(4), columns=20)
    assert {"IQ, N = 100         ", "7.28 kB of memory   "} <= set(narrow)
    assert max(map(len, narrow)) == 20


def test_the_terminal_writes_observed_variables():
    """As pixels, their labels could not be read."""
    seen = Variables(np.array([-0.4921, 1.5, 3.0]), np.array([-1.0, 0.0, -np.inf]), np.array([1.0, 2.0, np.inf]))
    moments = [Moment(draw_variables(seen), np.zeros(0), 0, None, 0.0, seen)]
    lines = on_screen(Episode(RUN, 7280, 1, moments, False, 50.0), columns=50)
    assert lines[:3] == [
        "obs 0  −0.492     −1 ·····█████│·········· 1      ",
        "obs 1     1.5      0 ··········│█████····· 2      ",
        "obs 2       3   -inf ··········│·········· inf    ",
    ]


def test_a_window_without_a_screen(monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.setitem(os.environ, "SDL_VIDEODRIVER", "dummy")
    open_window(make_film([episode(2)], frames_a_second=500), "title")


def test_a_screen_that_cannot_be_reached(monkeypatch):
    """As DISPLAY names it after a connection that has ended: nothing would be seen, and nothing said."""
    pytest.importorskip("pygame")
    monkeypatch.setitem(os.environ, "SDL_VIDEODRIVER", "offscreen")
    monkeypatch.setattr("iqrl.watching.showing._closed", lambda pygame: True)  # else it would wait for a key for ever
    with pytest.raises(BadInput, match="no window can be opened here"):
        open_window(make_film([episode(2)], frames_a_second=500), "title")


def test_a_window_opens_no_sound(monkeypatch):
    """A machine without a sound card would print what its sound library misses."""
    pygame = pytest.importorskip("pygame")
    monkeypatch.setitem(os.environ, "SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr(pygame, "init", lambda: pytest.fail("pygame.init opens all devices"))
    open_window(make_film([episode(2)], frames_a_second=500), "title")


def test_images_have_a_colour_for_each_channel():
    task = make_task(resolve("MinAtar/Breakout-v1", "dqn", steps=10_000))
    obs = np.zeros((10, 10, 4), np.uint8)
    obs[1, 2, 0] = obs[3, 4, 2] = 1
    picture = draw_image(obs, task)
    assert picture.shape == (10, 10, 3)
    assert not picture[0, 0].any()
    assert (picture[1, 2] != picture[3, 4]).any()


def test_variables_are_bars_from_the_middle():
    assert isinstance(signs(), Task)
    picture = draw_variables(Variables(np.array([-1.0, 0.5]), np.array([-1.0, -1.0]), np.array([1.0, 1.0])))
    inked = (picture != 255).any(axis=2)
    assert inked[20, :150].all()
    assert not inked[20, 160:].any()
    assert inked[120, 150:220].all()
    assert not inked[120, :140].any()


def test_variables_are_in_a_range_that_all_of_them_are_in():
    """That of an environment without bounds is a guess."""
    ends = np.full(2, -1.0), np.ones(2)
    seen = [Variables(np.array(values), *ends) for values in ((0.0, 0.5), (0.2, 7.0), (-0.5, -3.0))]
    moments = [Moment(draw_variables(one), np.zeros(0), 0, None, 0.0, one) for one in seen]
    found = in_one_range(moments)
    assert [(*one.variables.low, *one.variables.high) for one in found] == [(-1, -3, 1, 7)] * 3
    np.testing.assert_array_equal(found[1].picture, draw_variables(found[1].variables))
    assert in_one_range([moments[0]._replace(variables=None)])[0].variables is None


@pytest.fixture
def written(monkeypatch):
    """What is written into pictures, and up to which point on the right."""
    texts, write = [], ImageDraw.ImageDraw.text

    def text(draw, place, words, fill, font, anchor="la"):
        texts.append((words, draw.textbbox(place, words, font=font, anchor=anchor)))
        write(draw, place, words, fill, font, anchor)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", text)
    return texts


def test_variables_are_labelled_within_the_picture(written):
    draw_variables(Variables(np.array([-0.4921, 12345.0]), np.array([-1.0, 0.0]), np.array([1.0, 2e4])))
    assert [words for words, _ in written] == ["obs 0 = −0.492", "obs 1 = 12,300"]
    written.clear()
    draw_variables(Variables(np.linspace(-1, 1, 60), np.full(60, -1.0), np.ones(60)))
    assert len(written) == 48
    assert len({box[:2] for _, box in written}) == 48  # none on top of another
    assert all(box[1] >= 0 and box[3] <= 200 for _, box in written)


@pytest.mark.parametrize(("method", "unit"), [("local-q", True), ("stream-q", True), ("iq", False)])
def test_the_scale_of_the_bars_is_on_the_picture(written, method, unit):
    run = resolve("CartPole-v0", method, steps=1000)
    values = np.array([-123.456, 12345.6])
    moments = [Moment(np.zeros((20, 30, 3), np.uint8), values, 0, 1, 123.456)]
    film = make_film([Episode(run, 7280, 1, moments, False, 50.0)])
    words = [text for text, _ in written]
    scale = "bars from −1,990 to 12,300" + "; Q in scaled rewards" * unit
    assert {"return 123", "Q left", "Q right", "−123", "12,300", scale} <= set(words)
    assert all(box[0] >= 0 and box[2] <= film.frames[0].width and box[3] <= film.frames[0].height for _, box in written)
