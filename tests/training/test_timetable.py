"""The timetable against brute force: one step after another, as the paper's loop has them."""

import itertools

import pytest

from iqrl.make_run import resolve
from iqrl.training.timetable import BLOCK, Timetable, count_multiples, timetable_of

TIMES = [
    Timetable(
        learning_starts=start, update_every=every, gradient_steps=1, target_period=target, syncs=syncs, period=period,
        measure_every=measure,
    )
    for start, every, target, period, measure, syncs in [
        (0, 1, 1, 10, 1, True),
        (7, 1, 5, 10, 3, True),
        (8, 4, 12, 20, 2, True),
        (8, 4, 12, 20, 2, False),
        (60, 2, 1000, 30, 5, True),
        (12, 3, 3, 30, 0, True),
    ]
]  # fmt: skip
STEPS = 120


def walk(times):
    """What happens after each step: (steps done, starts learning, learns, syncs)."""
    since = 0
    for step in range(STEPS):
        done = step + 1
        if step >= times.learning_starts:
            since += 1
        learns = step >= times.learning_starts and since % times.update_every == 0
        learning = step >= times.learning_starts
        yield done, done == times.learning_starts, learns, learning and done % times.target_period == 0


@pytest.mark.parametrize("times", TIMES)
def test_each_step_is_what_the_loop_makes_of_it(times):
    for done, starts, learns, syncs in walk(times):
        step = done - 1
        assert times.starts_learning(done) == starts
        assert (not times.collects(step) and times.learns(step)) == learns
        assert (not times.collects(step) and times.syncs_after(done)) == syncs


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("length", [1, 3, 8, 40])
def test_a_round_is_cut_where_learning_starts_and_where_the_target_is_synced(times, length):
    turns = {done for done, starts, _, syncs in walk(times) if starts or (syncs and times.syncs)}
    for begin in range(0, STEPS, length):
        ends = [end for _, end in times.parts_of(begin, begin + length)]
        assert ends == sorted({done for done in turns if begin < done < begin + length} | {begin + length})
        assert [start for start, _ in times.parts_of(begin, begin + length)] == [begin, *ends[:-1]]


@pytest.mark.parametrize("times", TIMES)
def test_times_of_learning_are_counted(times):
    learns = {done - 1 for done, _, learns, _ in walk(times) if learns}
    edges = range(0, STEPS + 1, times.update_every)
    for begin, end in itertools.combinations(edges, 2):
        assert times.times_of_learning(begin, end) == sum(begin <= step < end for step in learns)


@pytest.mark.parametrize("times", [times for times in TIMES if times.measure_every])
def test_every_mth_update_is_measured(times):
    """Updates are numbered from the start of the run, as if every step before learning had made its share of them."""
    before = times.learning_starts // times.update_every
    updates = [done - 1 for done, _, learns, _ in walk(times) if learns]
    for number, step in enumerate(updates, before + 1):
        assert times.measures(step) == (number % times.measure_every == 0)


def test_a_sync_waits_for_the_next_update():
    times = timetable_of(resolve("CartPole-v0", "dqn", steps=8000, target_period=10, update_every=4), syncs=True)
    assert [done for done in range(1, 40) if times.syncs_after(done)] == [12, 24, 36]
    assert not resolve("CartPole-v0", "dqn", steps=8000, target_period=3, update_every=4).has_target


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("steps", [60, 100, 113])
def test_periods_end_at_multiples_and_at_the_last_step(times, steps):
    done, ends = 0, []
    while done < steps:
        done = times.period_end(done, steps)
        ends.append(done)
    assert ends == [*range(times.period, steps, times.period), steps]


@pytest.mark.parametrize("times", TIMES)
def test_blocks_are_whole_updates_and_end_with_syncs(times):
    assert times.block % times.update_every == 0
    longest = min(times.target_period, BLOCK) if times.syncs else BLOCK
    assert longest <= times.block < longest + times.update_every


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("steps", [60, 100, 113])
def test_syncs_that_are_computed_are_those_at_the_ends_of_segments(times, steps):
    """Learning goes on in segments, which end at a block, at a sync, at a period or at the last step."""
    computed, done = int(times.learning_starts > 0), times.learning_starts
    while times.syncs and done < steps:
        sizes = (times.block, times.target_period, times.period)
        done = min(steps, *((done // size + 1) * size for size in sizes))
        computed += 1
    assert times.count_computed_syncs(steps) == computed


@pytest.mark.parametrize("sizes", [(1,), (2, 3), (4, 6), (5, 10, 15), (3, 3, 7)])
def test_multiples_are_counted_once(sizes):
    for low, high in itertools.combinations(range(0, 61, 7), 2):
        expected = sum(any(n % size == 0 for size in sizes) for n in range(low + 1, high + 1))
        assert count_multiples(sizes, low, high) == expected


def test_it_is_that_of_the_run():
    settings = {"learning_starts": 40, "update_every": 4, "target_period": 80, "steps": 4000, "period": 400}
    times = timetable_of(resolve("CartPole-v0", "iq", **settings, gradient_steps=2, measure_every=5), syncs=True)
    assert times == Timetable(
        learning_starts=40, update_every=4, gradient_steps=2, target_period=80, syncs=True, period=400, measure_every=5
    )
