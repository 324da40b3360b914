"""Runs of known fate: the first line says what became of them, and nothing on the page contradicts it."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from iqrl.colours import method_colour
from iqrl.curve_svg import RIGHT, WIDTH, Mark, draw_curve
from iqrl.diagnostics.explain.diagnosis import diagnose
from iqrl.diagnostics.explain.page import as_data, write_page
from iqrl.diagnostics.explain.picture import draw_falls
from iqrl.make_run import read_run, resolve

RESULTS = Path(__file__).parents[3] / "results"
PERIODS, PERIOD = 40, 1000
NOISE = 0.2 * (-1.0) ** np.arange(PERIODS)


def recorded(study, **wanted):
    """A run of the published results, and its metrics."""
    plan = json.loads((RESULTS / study / "manifest.json").read_text())["runs"]
    entry = next(each for each in plan if wanted.items() <= each["config"].items())
    rows = pl.read_parquet(RESULTS / study / "curves.parquet").filter(pl.col("run") == entry["id"])
    names = [name for name in rows.columns[rows.columns.index("seed") :] if not rows[name].is_null().all()]
    return read_run(entry["config"]), rows.select(names)


def made(returns, steps=PERIODS * PERIOD, task="CartPole-v0", **columns):
    """A run of one seed by hand, ε decayed after four periods."""
    run = resolve(task, "dqn", steps=steps, period=PERIOD, seeds=1, buffer_size=1, epsilon_decay=4 * PERIOD)
    count = len(returns)
    base = {
        "seed": np.zeros(count, int), "step": PERIOD * np.arange(1, count + 1), "return": np.asarray(returns, float),
        "episodes": np.full(count, 10), "value_loss": np.full(count, 0.5), "max_q": np.full(count, 50.0),
        "epsilon": np.maximum(1 - 0.245 * np.arange(1, count + 1), 0.02), "occupancy": [[1.0]] * count,
    }  # fmt: skip
    return run, pl.DataFrame(base | columns)


def rising(count):
    return np.minimum(20 + 9.0 * np.arange(count), 200)


def broken_from(period):
    loss = np.full(PERIODS, 0.5)
    loss[period:] = np.nan
    return loss


RUNS = {
    "a collapsed DQN": (
        lambda: made(np.concatenate([rising(25), [60.0], np.full(14, 12.0)])),
        "**Collapsed** in 1 of 1 seed. Seed 0 fell from 200.0 at step 25,000 to 12.0 at step 27,000, and ended at 12.0",
    ),
    "a collapsed run, cut short": (
        lambda: made(np.concatenate([rising(15), np.full(10, 12.0)])),
        "**Collapsed** in 1 of 1 seed. Seed 0 fell from 146.0 at step 15,000 to 12.0 at step 16,000, and ended at "
        "12.0. The run stopped at step 25,000 of 40,000.",
    ),
    "IQ that never learned MountainCar": (
        lambda: recorded("mountaincar", method="iq", buffer_size=100),
        "**Never learned** in 5 of 5 seeds. The best level was -1000.0 (seed 0); exploring reached -1000.0; the task "
        "counts as solved at -110.0.",
    ),
    "a healthy run": (
        lambda: recorded("table1", method="iq", task="CartPole-v0", buffer_size=50_000),
        "**Fine** in 10 of 10 seeds. The return ended at 199.9; its best level was 200.0; the task counts as solved at "
        "195.0.",
    ),
    "a run cut short": (
        lambda: made(rising(12)),
        "**Still learning**: the run stopped at step 12,000 of 40,000; return 119.0; the task counts as solved at",
    ),
    "NaN": (
        lambda: made(rising(PERIODS), value_loss=broken_from(30)),
        "**Diverged** in 1 of 1 seed: value loss is not a finite number from step 31,000 on (seed 0).",
    ),
    "images": (
        lambda: recorded("minatar", method="iq-re"),
        "**Fine** in 5 of 5 seeds. The return ended at 5.57; its best level was 5.81.",
    ),
    "44 of 500 points": (
        lambda: made(np.concatenate([[22, 21, 22, 23, 30, 33, 34, 34, 34, 33], np.full(30, 9.4)])),
        "**Never learned** in 1 of 1 seed. The best level was 34.0 (seed 0); exploring reached 21.5; the task counts "
        "as solved at 195.0.",
    ),
    "three dips from which it rose again": (
        lambda: made(np.where(np.isin(np.arange(PERIODS), (24, 28, 32)), 20.0, rising(PERIODS))),
        "**Unsteady** in 1 of 1 seed. The return ended at 200.0; its best level was 200.0; the task counts as solved",
    ),
    "two dips from which it rose again": (
        lambda: made(np.where(np.isin(np.arange(PERIODS), (24, 28)), 20.0, rising(PERIODS))),
        "**Fine** in 1 of 1 seed. The return ended at 200.0; its best level was 200.0; the task counts as solved",
    ),
    "values that left all bounds": (
        lambda: made(rising(PERIODS), max_q=np.geomspace(1, 1e9, PERIODS)),
        "**Diverged** in 1 of 1 seed: max-Q on the batches is ",
    ),
    "a late rise": (
        lambda: made(np.concatenate([np.full(20, 25.0) + np.arange(20) % 2, 40 + 8.0 * np.arange(20)])),
        "**Still learning** at the end in 1 of 1 seed: return 180.0; the task counts as solved at 195.0.",
    ),
    "a plateau far below": (
        lambda: made(np.concatenate([rising(7), np.full(33, 74.0) + np.arange(33) % 2])),
        "**Stuck** in 1 of 1 seed. The return ended at 74.5; its best level was 75.0; the task counts as solved at",
    ),
    "a noisy rise, where nobody says what solves the task": (
        lambda: made(np.where(np.arange(PERIODS) < 3, 0.3, 0.8) + NOISE, task="Pendulum-v0"),
        "**Unsteady** in 1 of 1 seed. The return ended at 0.80; its best level was 1.00.",
    ),
    "noise alone": (
        lambda: made(0.3 + NOISE, task="Pendulum-v0"),
        "**Never learned** in 1 of 1 seed.",
    ),
    "DQN without replay": (
        lambda: recorded("table1", method="dqn", task="CartPole-v1", buffer_size=1),
        "**Never learned** in 5 of 10 seeds. The best level was 66.9 (seed 5); exploring reached 35.2; the task counts "
        "as solved at 475.0. Of the others, 2 collapsed",
    ),
    "IQ without replay": (
        lambda: recorded("table1", method="iq", task="CartPole-v0", buffer_size=1),
        "**Collapsed** in 6 of 10 seeds. Seed 9 fell from 193.5 at step 260,000 to 18.4 at step 280,000, and ended at "
        "30.5.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_the_first_line_says_what_became_of_it(name):
    make, words = RUNS[name]
    diagnosis = diagnose(*make())
    page = write_page(diagnosis, "explain.svg")
    first, second, third = page.splitlines()[:3]
    assert first.startswith(words)
    assert second.startswith("**With it:** ")
    assert third.startswith("**Try:** ")
    assert any(character.isdigit() for character in second + third)
    fine, known = diagnosis.fate.fate == "fine", np.isfinite(diagnosis.solved)
    assert ("nothing needs mending" in third) == (fine and known)
    assert ("no return is known at which this task counts as solved" in third) == (fine and not known)
    lasted = any(diagnosis.lasted(fall) for fall in diagnosis.falls)
    assert lasted == ("It lasted" in page) == (">fall that lasted</text>" in draw_falls(diagnosis) and lasted)
    assert not (lasted and fine)
    assert ("Yes" in page) + ("No:" in page) + ("Unknown:" in page) == 1  # one answer
    data = as_data(diagnosis)
    assert first.lower().startswith(f"**{data['fate']}**")
    json.dumps(data, allow_nan=False)


def test_the_commands_name_the_run():
    fine = diagnose(*RUNS["a healthy run"][0]())
    assert "`iqrl watch runs/a` shows an episode" in write_page(fine, path="runs/a")
    short = diagnose(*RUNS["a run cut short"][0]())
    assert "`iqrl resume runs/a`" in write_page(short, path="runs/a")
    data = as_data(short, "runs/a")
    assert "`iqrl resume runs/a`" in data["lines"][2]
    assert "`iqrl resume runs/a`" in data["advice"][0]["try"][0]


def test_the_picture_marks_the_falls():
    picture = draw_falls(diagnose(*RUNS["a collapsed DQN"][0]()))
    assert picture.count("<polyline") == 2  # the curve, and in black the part that fell
    assert picture.count('stroke="#24292f" stroke-width="1.2"') == 1
    assert picture.count('fill-opacity="0.14"') == 1
    assert ">fall that lasted</text>" in picture
    assert ": collapsed</text>" in picture
    assert "<path d=" in draw_falls(diagnose(*RUNS["images"][0]()))


SETTLED = 0.5 * (-1.0) ** np.arange(PERIODS)


def seeds_of(*curves, task="Pendulum-v0"):
    """A run of one seed per curve; nobody says what solves Pendulum."""
    parts = [made(curve, task=task)[1].with_columns(pl.lit(seed).alias("seed")) for seed, curve in enumerate(curves)]
    run = made(curves[0], task=task)[0]
    return dataclasses.replace(run, seeds=len(curves)), pl.concat(parts)


def level_at(value, **single):
    curve = np.concatenate([np.linspace(-45.0, -20.0, 4), np.linspace(0.0, value, 6), np.full(30, value)]) + SETTLED
    for at, high in single.items():
        curve[int(at[1:])] = high
    return curve


def test_a_fall_that_lasted_is_never_under_fine():
    """It began at a single high return, and its end is less than a quarter of the range below the best level."""
    falling = level_at(28.0, p31=54.2)
    falling[32:] = 4.5 + SETTLED[32:]
    falling[33] = -1.8
    run, metrics = seeds_of(falling)
    diagnosis = diagnose(run, metrics)
    assert diagnosis.fate.seeds[0].best - diagnosis.fate.seeds[0].final < 0.25 * np.ptp(falling)
    page, picture = write_page(diagnosis), draw_falls(diagnosis)
    assert page.startswith("**Declined** in 1 of 1 seed. Seed 0 fell from 54.2 at step 32,000 to -1.80 at step 34,000")
    assert "; its best level was 28.5." in page.splitlines()[0]
    assert "stands alone: the best level of this seed, a median of three returns, is 28.5. It" in page
    assert "It lasted: the final level is 4.50. Half of the loss was not regained by the end." in page
    assert 'fill-opacity="0.14"' in picture
    assert as_data(diagnosis)["seeds"][0]["falls"][-1]["lasted"] is True


def test_a_fall_from_a_single_high_return_to_the_usual_level_does_not_last():
    diagnosis = diagnose(*seeds_of(level_at(28.0, p31=80.0)))
    page, picture = write_page(diagnosis), draw_falls(diagnosis)
    assert page.startswith("**Fine** in 1 of 1 seed.")
    assert "1 fall deeper than 25% of the range of the returns, none of which lasted." in page
    assert "It did not last: the final level is 28.0." in page
    assert "not regained by the end" not in page
    assert 'fill-opacity="0.14"' not in picture
    assert 'fill-opacity="0.07"' in picture


def test_only_the_last_of_two_equal_falls_lasted():
    twice = level_at(28.0)
    twice[20:24], twice[34:] = -20.0, -20.0
    diagnosis = diagnose(*seeds_of(twice))
    assert [fall["lasted"] for fall in as_data(diagnosis)["seeds"][0]["falls"]] == [False, True]


def test_seeds_that_end_far_apart_are_uneven():
    diagnosis = diagnose(*seeds_of(level_at(28.0), level_at(69.0), level_at(4.5)))
    first, second, third = write_page(diagnosis).splitlines()[:3]
    assert first.startswith("**Uneven**: finals from 4.50 (seed 2) to 69.0 (seed 1). The mean best level was 34.3.")
    assert second == "**With it:** no fall deeper than 25% of the range of the returns.  "
    assert "`iqrl tune Pendulum-v0 --method dqn`" in third
    assert ": uneven</text>" in draw_falls(diagnosis)
    together = write_page(diagnose(*seeds_of(level_at(65.0), level_at(69.0))))
    assert together.startswith("**Fine** in 2 of 2 seeds.")
    assert "neven" not in together
    collapsed = level_at(69.0)
    collapsed[30:] = -20.0
    mixed = write_page(diagnose(*seeds_of(level_at(69.0), collapsed)))
    assert " Of the others, 1 was fine. Uneven: finals from -20.0 (seed 1) to 69.0 (seed 0)." in mixed.splitlines()[0]


def test_numbers_of_falls_do_not_stand_on_each_other():
    path = ((90.0, 1.0), (100.0, 0.0))
    marks = [Mark(start=90.0, end=100.0, path=path, lasting=True, label=str(i)) for i in range(1, 5)]
    drawing = draw_curve(np.arange(101.0), np.linspace(0, 1, 101)[None], "falls", marks)
    places = [float(x) for x in re.findall(r'<text x="([\d.]+)" y="39"', drawing)]
    assert len(places) == 4
    assert np.diff(places).min() >= 11.9
    assert max(places) <= WIDTH - RIGHT


def test_a_drawing_of_nothing_and_of_names_that_are_code():
    drawn = draw_curve(np.array([1000]), np.array([[np.nan]]), "<script>")
    assert "<script>" not in drawn
    assert "nan" not in drawn
    assert "<circle" in draw_curve(np.array([1000]), np.array([[3.0]]), "one")


def test_the_drawing_has_the_colour_of_the_method():
    run, metrics = made(np.concatenate([rising(21), np.full(9, 200.0)]))
    assert method_colour(run.method) in draw_falls(diagnose(run, metrics))


def test_a_run_that_its_own_rules_stopped_is_at_its_end():
    run, metrics = made(np.concatenate([rising(21), np.full(9, 200.0)]))
    assert diagnose(run, metrics).fate.fate == "still learning"
    assert diagnose(run, metrics, stopped=True).fate.fate == "fine"
