"""Operations of the compiled program and the parts of a step's time, against counts by hand."""

import functools
import json

import jax
import pytest

from iqrl.diagnostics.analysis import cost
from iqrl.diagnostics.analysis.cost import WithoutLearning, compile_partial_programs, format_flops, split_times
from iqrl.diagnostics.analysis.flops import count_executions, count_flops, list_programs
from iqrl.make_run import resolve
from iqrl.training.loop import driver_of
from iqrl.training.run_directory import RunStore
from iqrl.training.timetable import count_multiples

PARTS = ["environment", "acting", "storing_and_clustering", "learning", "measuring"]


@functools.cache
def small(method="dqn", **settings):
    lengths = {"steps": 2000, "period": 500, "seeds": 2, "learning_starts": 200, "target_period": 100}
    return resolve("CartPole-v0", method, **(lengths | settings))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "STEPS", 400)
        patch.setattr(cost, "ROUNDS", 2)
        return cost.cost_report(RunStore.create(tmp_path_factory.mktemp("run"), small(measure_every=50)))


def float32(*shape):
    return jax.ShapeDtypeStruct(shape, "float32")


# Operations


def test_a_product_of_matrices_is_counted_as_the_paper_counts_it():
    assert count_flops(lambda a, b: a @ b, float32(8, 5), float32(5, 7)) == 2 * 8 * 5 * 7


def test_what_computes_nothing_counts_nothing():
    assert count_flops(lambda a: a, float32(3)) == 0


def test_an_update_takes_its_products_and_no_more_than_the_formula(report):
    one_state, head, batch = 2 * (4 * 64 + 64 * 2), 2 * 64 * 2, 32
    # Forward; backward to both weights, and through the head to the hidden layer. The target's values of a
    # small buffer are cached, so the second forward pass of the formula is not made.
    products = batch * (one_state + one_state + head)
    assert products < report[0]["pieces_per_seed"]["learning"]["flops"] < 4 * batch * one_state


def test_several_gradient_steps_count_as_often_as_they_are_made(report):
    driver = driver_of(small(gradient_steps=3))
    assert count_executions(driver)["learning"] == 1800 * 3
    # A loop over them would be counted once, and with it what it adds around them.
    assert count_flops(*list_programs(driver)["learning"]) == report[0]["pieces_per_seed"]["learning"]["flops"]


def test_totals_add_up(report):
    numbers, _ = report
    pieces, one = numbers["pieces_per_seed"], numbers["flops_per_seed"]
    assert {name: piece["times"] for name, piece in pieces.items()} == count_executions(
        driver_of(small(measure_every=50))
    )
    assert pieces["measuring"]["times"] == 1800 // 50
    # Before and after: both states of 125 transitions; and s of 125 in the reservoir, with s' by the target.
    evaluations = 4 * 125 + 3 * 125
    assert evaluations * 2 * 4 * 64 < pieces["measuring"]["flops"] < 2 * evaluations * 2 * (4 * 64 + 64 * 2)
    assert one["compiled"] == sum(piece["flops"] * piece["times"] for piece in pieces.values())
    measuring = pieces["measuring"]["flops"] * pieces["measuring"]["times"]
    assert one["ratio"] == pytest.approx((one["compiled"] - measuring) / one["formula"])
    assert numbers["flops_all_seeds"] == {"formula": 2 * one["formula"], "compiled": 2 * one["compiled"]}


def segment_ends(driver):
    """Where the loop of `Driver.advance` ends its segments once learning has started, driven period by period."""
    run, t, ends = driver.run, driver.run.learning_starts, []
    while t < run.steps:
        next_multiple = lambda size, t=t: (t // size + 1) * size
        t = min(run.steps, *map(next_multiple, (driver.timetable.block, run.target_period, run.period)))
        ends.append(t)
    return ends


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"target_period": 1000, "period": 350},
        {"target_period": 700, "update_every": 4, "steps": 1996, "period": 300},
        {"learning_starts": 2000},
    ],
)
def test_a_sync_is_counted_for_every_segment_and_when_learning_starts(settings):
    driver = driver_of(small(**settings))
    counted = count_executions(driver)
    assert counted["syncing"] == 1 + len(segment_ends(driver))
    assert counted["collecting"] + counted["observing"] == driver.run.steps


@pytest.mark.parametrize(
    "settings",
    [{"measure_every": 30}, {"measure_every": 70, "update_every": 4}, {"measure_every": 7, "gradient_steps": 3}],
)
def test_every_mth_time_of_learning_is_measured(settings):
    """Counted from step 0, as `RunMeter.measure` does."""
    run = small(**settings)
    learned = range(run.learning_starts + run.update_every, run.steps + 1, run.update_every)
    due = [step for step in learned if step // run.update_every % run.measure_every == 0]
    assert count_executions(driver_of(run))["measuring"] == len(due)


def test_without_a_target_syncs_are_not_counted():
    driver = driver_of(resolve("CartPole-v0", "stream-q", steps=2000))
    assert count_executions(driver)["syncing"] == 0


@pytest.mark.parametrize("sizes", [(500, 100, 350), (4, 6, 10), (7, 7, 7)])
def test_multiples(sizes):
    by_hand = sum(any(number % size == 0 for size in sizes) for number in range(201, 2001))
    assert count_multiples(sizes, 200, 2000) == by_hand


# Time


def test_every_part_has_its_share(report):
    numbers, _ = report
    times = numbers["microseconds_per_step"]
    assert list(times) == [*PARTS, "total"]
    assert list(numbers["shares"]) == PARTS
    assert min(times.values()) >= 0
    assert sum(times[part] for part in PARTS) == pytest.approx(times["total"])
    assert sum(numbers["shares"].values()) == pytest.approx(1)
    assert times["learning"] > times["environment"]


def test_differences_are_what_each_program_adds():
    assert split_times({"a": 1.0, "b": 3.0, "c": 7.0}) == {"a": 1.0, "b": 2.0, "c": 4.0}


def test_a_program_that_took_longer_than_one_that_does_more_counts_as_taking_as_long():
    assert split_times({"a": 5.0, "b": 3.0, "c": 7.0}) == {"a": 3.0, "b": 0.0, "c": 4.0}


def test_programs_that_do_less_do_what_they_are_timed_for():
    """Nothing that is timed was removed by the compiler; nothing that is not timed was left."""
    driver = driver_of(small())
    init, stop = jax.jit(driver.init), jax.numpy.int32(driver.run.learning_starts)
    after, flops = {}, {}
    for name, program in compile_partial_programs(driver).items():
        # The body of the loop is counted once, and the passes of both seeds are in it.
        flops[name] = program.cost_analysis()["flops"]
        after[name], period = program(init(), stop)
        assert int(after[name].step) == stop
        assert (period.episodes > 0).all()
    one_pass = 2 * 2 * (4 * 64 + 64 * 2)
    # To act is one pass. To store is none: the target's values of both states are computed before an update.
    # What is fused into two places is computed in both, hence the room above.
    assert 1 < (flops["acting"] - flops["environment"]) / one_pass < 2.5
    assert 0 < (flops["storing_and_clustering"] - flops["acting"]) / one_pass < 1
    stored = {name: bool((state.agent.replay.rows != 0).any()) for name, state in after.items()}
    assert stored == {"environment": False, "acting": False, "storing_and_clustering": True}


def test_random_numbers_for_updates_are_not_drawn_where_there_are_none():
    driver = driver_of(small())
    without = WithoutLearning(driver.run, driver.task, driver.agent)
    seeds, t = jax.ShapeDtypeStruct((2,), "uint32"), jax.ShapeDtypeStruct((), "int32")
    drawn = lambda some: jax.eval_shape(some.draw, seeds, t).run.shape
    assert drawn(without) == (100, 2, 2 + 4)  # to act, and to reset the pole
    assert drawn(driver) == (100, 2, 2 + 4 + 32)


# The report


def test_the_report_is_json_and_lines(report):
    numbers, lines = report
    assert json.loads(json.dumps(numbers)) == numbers
    text = "\n".join(lines)
    assert lines[0] == "dqn on CartPole-v0, N=100, 2 seeds, 2,000 steps"
    assert "178.5 MFLOPs" in text  # (4 · 1800 · 32 + 2000) · 768
    for name in (*PARTS, *numbers["pieces_per_seed"]):
        assert f"  {name.replace('_', ' ')} " in text


def test_the_report_says_where_the_formula_does_not_apply(report, monkeypatch):
    monkeypatch.setattr(cost, "run_flops", lambda run, task: None)
    monkeypatch.setattr(cost, "split_wallclock", lambda driver: dict.fromkeys(PARTS, 1.0))
    numbers, lines = cost.cost_report(small())
    assert numbers["flops_per_seed"]["formula"] is numbers["flops_per_seed"]["ratio"] is None
    assert numbers["pieces_per_seed"]["learning"] == report[0]["pieces_per_seed"]["learning"]
    assert any("unknown" in line for line in lines)


def test_of_a_task_outside_the_program_there_is_the_formula_alone():
    run = resolve("gymnasium:CartPole-v1", "dqn", steps=2000, period=500, learning_starts=200, buffer_size=100, seeds=2)
    numbers, lines = cost.cost_report(run)
    assert numbers["flops_per_seed"] == {"formula": (4 * 1800 * 32 + 2000) * 768, "compiled": None, "ratio": None}
    assert "178.5 MFLOPs" in lines[3]
    assert lines[-1].startswith("  in the compiled program: unknown, the task is played outside it")
    assert json.loads(json.dumps(numbers)) == numbers


def test_units():
    assert [format_flops(n) for n in (1, 999, 1000, 1e6, 1e9, 13.962e15)] == [
        "1 FLOPs", "999 FLOPs", "1 kFLOPs", "1 MFLOPs", "1 GFLOPs", "13.96 PFLOPs",
    ]  # fmt: skip
