"""Runs of known fate: the first line says what became of them, and nothing on the page contradicts it."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from iqrl.colours import method_colour
from iqrl.curve_svg import draw_curve
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
        "**Fine** in 1 of 1 seed. The return ended at 0.80; its best level was 1.00.",
    ),
    "noise alone": (
        lambda: made(0.3 + NOISE, task="Pendulum-v0"),
        "**Never learned** in 1 of 1 seed.",
    ),
    "DQN without replay": (
        lambda: recorded("table1", method="dqn", task="CartPole-v1", buffer_size=1),
        "**Collapsed** in 5 of 10 seeds. Seed 1 fell from 214.0 at step 280,000 to 12.0 at step 400,000, and",
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
    assert ("nothing needs mending" in third) == (diagnosis.fate.fate == "fine")
    assert ("Yes" in page) + ("No:" in page) + ("Unknown:" in page) == 1  # one answer
    data = as_data(diagnosis)
    assert first.lower().startswith(f"**{data['fate']}**")
    json.dumps(data, allow_nan=False)


def test_the_picture_marks_the_falls():
    picture = draw_falls(diagnose(*RUNS["a collapsed DQN"][0]()))
    assert picture.count("<polyline") == 1
    assert picture.count('fill-opacity="0.14"') == 1
    assert ">fall that lasted</text>" in picture
    assert ": collapsed</text>" in picture
    assert "<path d=" in draw_falls(diagnose(*RUNS["images"][0]()))


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
