"""iqrl watch. What it draws is tested in tests/test_watching.py."""

from pathlib import Path

import pytest

from iqrl.watching.pictures import INSTALL


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "which run? name directories of runs or files of models, or give --demo."),
        (["runs/dqn", "--demo"], "which run?"),
        (["runs/dqn", "--longest", "0"], "--longest must be at least 1, got 0."),
        (["runs/dqn", "--fps", "0"], "--fps must be more than 0 and at most 1000, got 0.0."),
        (["runs/dqn", "--out", "a.png"], "a.png is neither a GIF nor an MP4"),
        (["elsewhere", "--out", "a.gif"], "elsewhere holds no run"),
    ],
)
def test_bad_input(refused, arguments, words):
    assert words in refused("watch", *arguments)


def test_what_is_missing_is_installed_by_the_line_of_the_pages(refused, monkeypatch):
    monkeypatch.setattr("iqrl.watching.pictures.find_spec", lambda name: None)
    assert INSTALL in refused("watch", "--demo")
    root = Path(__file__).parents[2]
    for page in ("README.md", "docs/watch.md"):
        assert INSTALL.partition(" in ")[0] in (root / page).read_text()


def test_two_runs_side_by_side_in_a_file(run, trained, monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    code, out, err = run("watch", trained, trained, "--longest", 3, "--start", 1)
    assert (code, out) == (0, "wrote watch.gif\n")  # no screen, no terminal
    assert err == "dqn on CartPole-v0: return 3, still going after 3 steps\n" * 2
    assert Path("watch.gif").read_bytes()[:4] == b"GIF8"


def test_that_there_is_no_picture_is_said_once(run, trained, monkeypatch):
    monkeypatch.setattr("iqrl.watching.pictures._own_picture", lambda env, task: None)
    code, out, err = run("watch", trained, trained, "--longest", 2, "--out", "bars.gif")
    assert (code, out) == (0, "wrote bars.gif\n")
    note = "CartPole-v0 draws no picture (by render_mode 'rgb_array'); its observations are shown as bars."
    assert err.splitlines()[2:] == [note]
