"""The five games in situations worked out by hand, and step by step beside MinAtar itself where it is installed.

MinAtar is not among the test requirements, as it would bring pandas and seaborn; `pip install --no-deps minatar` is
enough.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from records import env_inputs

from iqrl.core.encoders import Image
from iqrl.envs.check import check_task
from iqrl.envs.minatar import asterix, seaquest, space_invaders
from iqrl.envs.registry import TASKS, find_task
from iqrl.errors import BadInput
from iqrl.settings import task_settings_class

NAMES = {
    "asterix": "MinAtar/Asterix-v1",
    "breakout": "MinAtar/Breakout-v1",
    "freeway": "MinAtar/Freeway-v1",
    "seaquest": "MinAtar/Seaquest-v1",
    "space_invaders": "MinAtar/SpaceInvaders-v1",
}
CHANNELS = {"asterix": 4, "breakout": 4, "freeway": 7, "seaquest": 10, "space_invaders": 6}
ACTIONS = {"asterix": 5, "breakout": 3, "freeway": 3, "seaquest": 6, "space_invaders": 4}
NOT_STICKY = 0.99


@functools.cache
def task_of(game):
    return task_with(game)


def task_with(game, **settings):
    entry = find_task(NAMES[game])
    return entry.make(task_settings_class(entry.settings)(**settings))


@functools.cache
def compiled(game):
    task = task_of(game)
    return jax.jit(task.step), jax.jit(task.observe)


def first(game, uniform=0.0):
    task = task_of(game)
    return task.reset(env_inputs([uniform] * task.num_reset_uniforms))


def situation(game, **changes):
    """The start of a game with some things different."""
    play = first(game)
    kinds = play.game._asdict()
    changes = {name: jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), value, kinds[name])
               for name, value in changes.items()}  # fmt: skip
    return play._replace(game=play.game._replace(**changes))


def step(game, play, action=0, draws=()):
    """One step: the play after it, the reward, and whether the game is over. No action sticks."""
    uniforms = np.full(task_of(game).num_step_uniforms, NOT_STICKY, np.float32)
    uniforms[1 : 1 + len(draws)] = draws
    play, reward, over = compiled(game)[0](play, jnp.int32(action), env_inputs(uniforms))
    return play, float(reward), bool(over)


def steps(game, play, actions):
    """Several steps: the play after them and the sum of their rewards."""
    total = 0.0
    for action in actions:
        play, reward, _ = step(game, play, action)
        total += reward
    return play, total


def marks(game, play, channel):
    """The cells (row, column) that are on in a channel."""
    image = np.asarray(compiled(game)[1](play))
    return [tuple(map(int, cell)) for cell in np.argwhere(image[:, :, channel])]


# What all have in common


@pytest.mark.parametrize("game", NAMES)
def test_the_record(game):
    task, channels = task_of(game), CHANNELS[game]
    assert check_task(task.name, task) is task
    assert NAMES[game] in TASKS
    assert (task.name, task.actions, task.image[:3]) == (NAMES[game], ACTIONS[game], (10, 10, channels))
    assert task.low == (0.0,) * (100 * channels)
    assert task.high == (1.0,) * (100 * channels)
    image = compiled(game)[1](first(game))
    assert (image.shape, image.dtype) == (task.image[:3], jnp.uint8)
    assert task.time_limit == 2**30
    hash(task)


def test_an_image_of_another_shape_is_refused():
    task = task_of("breakout")
    wrong = [task._replace(image=Image(10, 10, 3)), task._replace(image=None), task._replace(low=(0.0,) * 399)]
    for other in wrong:
        with pytest.raises(BadInput, match=r"observe gives shape \(10, 10, 4\), but"):
            check_task("wrong", other)


def test_an_action_sticks():
    """The paddle goes on to the left when the next action does not get through."""
    go, _ = compiled("breakout")
    play = first("breakout")
    paddles = []
    for action, luck in ((1, 0.5), (2, 0.0999), (2, 0.1001), (0, 0.05), (0, 0.5), (1, 0.05)):
        play, _, _ = go(play, jnp.int32(action), env_inputs([luck]))
        paddles.append(int(play.game.paddle))
    assert paddles == [3, 2, 3, 4, 4, 4]


def test_the_first_action_that_sticks_does_nothing():
    play, _, _ = compiled("breakout")[0](first("breakout"), jnp.int32(1), env_inputs([0.0]))
    assert int(play.game.paddle) == 4


# Breakout


PADDLE, BALL, BALL_TRAIL, BRICK = range(4)


def flying(x, y, dx, dy, **more):
    return situation("breakout", x=x, y=y, dx=dx, dy=dy, **more)


def test_breakout_starts_in_one_of_two_corners():
    for uniform, column, way in ((0.49, 0, 1), (0.5, 9, -1)):
        play = first("breakout", uniform)
        assert marks("breakout", play, BALL) == marks("breakout", play, BALL_TRAIL) == [(3, column)]
        play, reward, over = step("breakout", play)
        assert marks("breakout", play, BALL) == [(4, column + way)]
        assert marks("breakout", play, BALL_TRAIL) == [(3, column)]
        assert marks("breakout", play, PADDLE) == [(9, 4)]
        assert marks("breakout", play, BRICK) == [(y, x) for y in (1, 2, 3) for x in range(10)]
        assert (reward, over) == (0, False)


@pytest.mark.parametrize(
    ("paddle", "way", "over"),
    [(3, (1, -1), False), (4, (-1, -1), False), (5, (1, 1), True)],
    ids=["middle", "side", "missed"],
)
def test_breakout_paddle(paddle, way, over):
    """The ball flies from (8, 3) to (9, 4)."""
    play, reward, ended = step("breakout", flying(3, 8, 1, 1, paddle=paddle))
    assert (int(play.game.dx), int(play.game.dy)) == way
    assert marks("breakout", play, BALL) == [(9 if over else 8, 4)]
    assert (reward, ended) == (0, over)


def test_breakout_paddle_moves_before_the_ball_and_stays_on_the_board():
    play, _, over = step("breakout", flying(3, 8, 1, 1, paddle=5), 1)
    assert (int(play.game.paddle), int(play.game.dx), over) == (4, -1, False)
    play, _, over = step("breakout", flying(3, 8, 1, 1, paddle=4), 1)
    assert (int(play.game.paddle), int(play.game.dx), over) == (3, 1, False)
    assert int(steps("breakout", flying(5, 4, 1, 1, paddle=1), [1, 1])[0].game.paddle) == 0
    assert int(steps("breakout", flying(5, 4, 1, 1, paddle=8), [2, 2])[0].game.paddle) == 9


def test_breakout_walls():
    for x, way in ((9, 1), (0, -1)):
        play, _, _ = step("breakout", flying(x, 5, way, 1))
        assert marks("breakout", play, BALL) == [(6, x)]
        assert (int(play.game.dx), int(play.game.dy)) == (-way, 1)
    play, reward, _ = step("breakout", flying(4, 0, 1, -1))
    assert marks("breakout", play, BALL) == [(0, 5)]
    assert (int(play.game.dx), int(play.game.dy), reward) == (1, 1, 0)


def test_breakout_brick():
    play, reward, over = step("breakout", flying(4, 4, 1, -1))
    assert (reward, over) == (1, False)
    assert marks("breakout", play, BALL) == [(4, 5)]
    assert int(play.game.dy) == 1
    assert (3, 5) not in marks("breakout", play, BRICK)
    assert len(marks("breakout", play, BRICK)) == 29


def test_breakout_a_second_brick_in_a_row_is_flown_through():
    play, reward, _ = step("breakout", flying(4, 4, 1, -1, in_wall=True))
    assert reward == 0
    assert marks("breakout", play, BALL) == [(3, 5)]
    assert len(marks("breakout", play, BRICK)) == 30
    assert bool(play.game.in_wall)


def test_breakout_new_bricks_when_the_ball_is_at_the_bottom():
    none = np.zeros((3, 10), bool)
    assert len(marks("breakout", step("breakout", flying(3, 7, 1, 1, bricks=none))[0], BRICK)) == 0
    play, _, over = step("breakout", flying(3, 8, 1, 1, paddle=3, bricks=none))
    assert len(marks("breakout", play, BRICK)) == 30
    assert not over
    one = none.copy()
    one[0, 0] = True
    assert len(marks("breakout", step("breakout", flying(3, 8, 1, 1, paddle=3, bricks=one))[0], BRICK)) == 1


# Asterix


PLAYER, ENEMY, THING_TRAIL, GOLD = range(4)


def things(columns, gold=(), left=()):
    """Things in rows, {row: column}; those in `left` go to the left."""
    at = np.zeros((4, 8), np.int32)
    for row, column in columns.items():
        at[:, row - 1] = column, 1, row not in left, row in gold
    return dict(zip(("thing_x", "present", "right", "gold"), at, strict=True))


def test_asterix_player_moves_in_eight_rows():
    play = first("asterix")
    assert marks("asterix", play, PLAYER) == [(5, 5)]
    for action, cell in ((1, (5, 4)), (2, (4, 5)), (3, (5, 6)), (4, (6, 5)), (0, (5, 5))):
        assert marks("asterix", step("asterix", play, action)[0], PLAYER) == [cell]
    for action, cell in ((1, (5, 0)), (2, (1, 5)), (3, (5, 9)), (4, (8, 5))):
        assert marks("asterix", steps("asterix", play, [action] * 6)[0], PLAYER) == [cell]


def test_asterix_first_thing_comes_in_the_eleventh_step():
    """In which it also moves for the first time: things move in steps 6, 11, 16, ..."""
    play, _ = steps("asterix", first("asterix"), [0] * 10)
    assert marks("asterix", play, ENEMY) == marks("asterix", play, GOLD) == []
    from_left, _, _ = step("asterix", play, 0, (0.49, 0.33, 0.0))
    assert marks("asterix", from_left, GOLD) == [(1, 1)]
    assert marks("asterix", from_left, THING_TRAIL) == [(1, 0)]
    from_right, _, _ = step("asterix", play, 0, (0.5, 0.34, 0.99))
    assert marks("asterix", from_right, ENEMY) == [(8, 8)]
    assert marks("asterix", from_right, THING_TRAIL) == [(8, 9)]
    assert marks("asterix", from_right, GOLD) == []
    assert marks("asterix", steps("asterix", from_right, [0] * 4)[0], ENEMY) == [(8, 8)]
    assert marks("asterix", steps("asterix", from_right, [0] * 5)[0], ENEMY) == [(8, 7)]
    assert int(from_left.game.spawn_timer) == 9


def test_asterix_things_come_into_free_rows():
    taken = things({1: 4, 3: 4, 4: 4, 6: 4, 7: 4, 8: 4})
    for uniform, row in ((0.0, 2), (0.49, 2), (0.5, 5), (0.99, 5)):
        play, _, _ = step("asterix", situation("asterix", spawn_timer=0, **taken), 0, (0.0, 0.9, uniform))
        assert (row, 0) in marks("asterix", play, ENEMY)
        assert len(marks("asterix", play, ENEMY)) == 7
    full = things(dict.fromkeys(range(1, 9), 4))
    play, _, _ = step("asterix", situation("asterix", x=0, spawn_timer=0, **full), 0, (0.0, 0.0, 0.0))
    assert marks("asterix", play, ENEMY) == [(y, 4) for y in range(1, 9)]
    assert int(play.game.spawn_timer) == 9


def test_asterix_gold_is_collected_and_enemies_end_the_game():
    both = situation("asterix", **things({5: 6, 6: 5}, gold=(5,)))
    play, reward, over = step("asterix", both, 3)
    assert (reward, over) == (1, False)
    assert marks("asterix", play, GOLD) == []
    assert marks("asterix", play, ENEMY) == [(6, 5)]
    assert step("asterix", both, 4)[1:] == (0, True)
    assert step("asterix", both, 0)[1:] == (0, False)


def test_asterix_things_run_into_the_player():
    for gold, outcome in (((), (0, True)), ((5,), (1, False))):
        for column, left in ((4, ()), (6, (5,))):
            play = situation("asterix", move_timer=0, **things({5: column}, gold, left))
            assert step("asterix", play)[1:] == outcome


def test_asterix_things_leave_the_board():
    play, _, _ = step("asterix", situation("asterix", move_timer=0, **things({1: 9, 2: 0, 3: 9}, left=(2, 3))))
    assert marks("asterix", play, ENEMY) == [(3, 8)]
    assert marks("asterix", play, THING_TRAIL) == [(3, 9)]


def test_asterix_becomes_more_difficult():
    """Every 102 steps; things move faster every other time."""
    seen, play = [], first("asterix")
    for count in range(1, 1 + 4 * 102):
        play, _, _ = step("asterix", play)
        if count % 102 in (101, 0):
            seen.append((int(play.game.spawn_interval), int(play.game.move_interval)))
    assert seen == [(10, 5), (9, 5), (9, 5), (8, 4), (8, 4), (7, 4), (7, 4), (6, 3)]
    easiest = situation("asterix", ramp_timer=-1, ramps=9, spawn_interval=1, move_interval=1)
    play, _, _ = step("asterix", easiest)
    assert (int(play.game.spawn_interval), int(play.game.move_interval)) == (1, 1)


def test_ramping_can_be_switched_off():
    play = situation("asterix", ramp_timer=-1, ramps=1)
    assert int(step("asterix", play)[0].game.spawn_interval) == 9
    after, _, _ = jax.jit(asterix("still", ramping=False).step)(play, jnp.int32(0), env_inputs([1.0] * 4))
    assert (int(after.game.spawn_interval), int(after.game.move_interval)) == (10, 5)
    play = situation("seaquest", y=1, crew=1, surfaced=False, ramps=1)
    after, _, _ = jax.jit(seaquest("still", ramping=False).step)(play, jnp.int32(2), env_inputs([1.0] * 6))
    assert (int(after.game.crew), int(after.game.spawn_interval), int(after.game.move_interval)) == (0, 20, 5)
    play = situation("space_invaders", aliens=np.zeros((10, 10), bool))
    after, _, _ = jax.jit(space_invaders("still", ramping=False).step)(play, jnp.int32(0), env_inputs([1.0] * 1))
    assert (int(after.game.aliens.sum()), int(after.game.move_interval)) == (24, 12)


# Freeway


CHICKEN, CAR = range(2)


def cars(x=0, speed=5, right=True, timer=5):
    """The same car in each row."""
    values = {"car_x": x, "speed": speed, "right": right, "car_timer": timer}
    return {name: np.full(8, value) for name, value in values.items()}


def test_freeway_start():
    task = task_of("freeway")
    play = task.reset(env_inputs([0.0, 0.19, 0.2, 0.39, 0.4, 0.6, 0.8, 0.99] + [0.49] * 4 + [0.5] * 4))
    assert marks("freeway", play, CHICKEN) == [(9, 4)]
    assert marks("freeway", play, CAR) == [(y, 0) for y in range(1, 9)]
    assert play.game.speed.tolist() == play.game.car_timer.tolist() == [1, 1, 2, 2, 3, 4, 5, 5]
    trails = [marks("freeway", play, channel) for channel in range(2, 7)]
    assert trails == [[(1, 1), (2, 1)], [(3, 1), (4, 1)], [(5, 9)], [(6, 9)], [(7, 9), (8, 9)]]


def test_freeway_chicken_walks_every_third_step():
    play, rows = situation("freeway", **cars()), []
    for action in (1, 1, 1, 1, 1, 1, 1, 0, 2, 2, 2, 2, 2):
        play, _, _ = step("freeway", play, action)
        rows.append(int(play.game.y))
    assert rows == [9, 9, 9, 8, 8, 8, 7, 7, 7, 8, 8, 8, 9]
    assert int(step("freeway", situation("freeway", move_timer=0, **cars()), 2)[0].game.y) == 9


def test_freeway_on_the_other_side():
    """A point; the chicken starts over; the cars have other speeds, and stay where they are."""
    play = situation("freeway", y=1, move_timer=0, **cars(x=7))
    draws = [0.0, 0.2, 0.4, 0.6, 0.8, 0.8, 0.8, 0.8] + [0.0] * 7 + [0.9]
    after, reward, over = step("freeway", play, 1, draws)
    assert (reward, over) == (1, False)
    assert marks("freeway", after, CHICKEN) == [(9, 4)]
    assert marks("freeway", after, CAR) == [(y, 7) for y in range(1, 9)]
    assert after.game.speed.tolist() == [1, 2, 3, 4, 5, 5, 5, 5]
    assert after.game.car_timer.tolist() == [0, 1, 2, 3, 4, 4, 4, 4]
    assert after.game.right.tolist() == [False] * 7 + [True]
    other, reward, _ = step("freeway", play, 0, draws)
    assert (reward, other.game.speed.tolist()) == (0, [5] * 8)


@pytest.mark.parametrize(
    ("x", "right", "timer", "row"),
    [(4, True, 3, 9), (3, True, 0, 9), (5, False, 0, 9), (4, True, 0, 9), (3, True, 1, 5), (5, True, 0, 5)],
)
def test_freeway_a_car_sends_the_chicken_back(x, right, timer, row):
    play, reward, over = step("freeway", situation("freeway", y=5, **cars(x, 3, right, timer)))
    assert (int(play.game.y), reward, over) == (row, 0, False)


def test_freeway_cars_drive_around():
    """A car of speed 2 drives every third step; what leaves on one side comes in on the other."""
    play, columns = situation("freeway", **cars(x=8, speed=2, timer=2)), []
    for _ in range(9):
        play, _, _ = step("freeway", play)
        columns.append(int(play.game.car_x[0]))
    assert columns == [8, 8, 9, 9, 9, 0, 0, 0, 1]
    play, _, _ = step("freeway", situation("freeway", **cars(x=0, speed=1, right=False, timer=0)))
    assert marks("freeway", play, CAR) == [(y, 9) for y in range(1, 9)]
    assert marks("freeway", play, 2) == [(y, 0) for y in range(1, 9)]


def test_freeway_ends_after_2501_steps():
    assert int(first("freeway").game.frames_left) == 2500
    play, _, over = step("freeway", situation("freeway", frames_left=1))
    assert not over
    assert step("freeway", play)[2]


# Seaquest


FRONT, BACK, BULLET, TRAIL, ENEMY_BULLET, FISH, ENEMY_SUB, AIR, CREW, DIVER = range(10)
DIVE = {"y": 4, "surfaced": False}


def newest(kind, **values):
    """One thing in the last place of an array of things."""
    none = getattr(first("seaquest").game, kind)
    return {kind: none._replace(**{name: getattr(none, name).at[-1].set(value) for name, value in values.items()})}


def fish(x, y, right=True, timer=5, **more):
    return newest("enemies", x=x, y=y, right=right, alive=True, timer=timer, **more)


def diver(x, y, right=True, timer=5):
    return newest("divers", x=x, y=y, right=right, swimming=True, timer=timer)


def test_seaquest_start():
    play = first("seaquest")
    assert marks("seaquest", play, FRONT) == [(0, 5)]
    assert marks("seaquest", play, BACK) == [(0, 6)]
    assert marks("seaquest", play, AIR) == [(9, x) for x in range(10)]
    assert marks("seaquest", play, CREW) == []
    play, _, over = step("seaquest", play, 3)
    assert (marks("seaquest", play, FRONT), marks("seaquest", play, BACK)) == ([(0, 6)], [(0, 5)])
    assert not over
    deepest, _ = steps("seaquest", play, [4] * 12)
    assert marks("seaquest", deepest, FRONT) == [(8, 6)]


def test_seaquest_first_enemy_and_first_diver():
    """In steps 21 and 31; both move six steps later, counting the one in which they come."""
    play, _ = steps("seaquest", first("seaquest"), [0] * 20)
    submarine, _, _ = step("seaquest", play, 0, (0.49, 0.33, 0.0))
    assert marks("seaquest", submarine, ENEMY_SUB) == [(1, 0)]
    play, _, _ = step("seaquest", play, 0, (0.5, 0.34, 0.99))
    assert marks("seaquest", play, FISH) == [(8, 9)]
    play, _ = steps("seaquest", play, [0] * 5)
    assert marks("seaquest", play, FISH) == [(8, 8)]
    assert marks("seaquest", play, TRAIL) == [(8, 9)]
    play, _ = steps("seaquest", play, [0] * 4)
    play, _, _ = step("seaquest", play, 0, (0, 0, 0, 0.0, 0.5))
    assert marks("seaquest", play, DIVER) == [(5, 0)]
    assert marks("seaquest", steps("seaquest", play, [0] * 5)[0], DIVER) == [(5, 1)]


def test_seaquest_no_enemy_comes_against_others_in_its_row():
    for right, uniform, count in ((True, 0.0, 2), (True, 0.9, 1), (False, 0.9, 2), (False, 0.0, 1)):
        play = situation("seaquest", spawn_timer=0, **fish(4, 3, right))
        play, _, _ = step("seaquest", play, 0, (uniform, 0.9, 2 / 8))
        assert len(marks("seaquest", play, FISH)) == count
        assert int(play.game.spawn_timer) == 19
    gone = situation("seaquest", spawn_timer=0, **newest("enemies", x=4, y=3, right=True))
    play, _, _ = step("seaquest", gone, 0, (0.9, 0.9, 2 / 8))
    assert marks("seaquest", play, FISH) == [(3, 9)]


def test_seaquest_shoots_an_enemy():
    for channel, submarine in ((FISH, False), (ENEMY_SUB, True)):
        play = situation("seaquest", right=True, **DIVE, **fish(7, 4, submarine=submarine, shot_timer=9))
        play, reward, _ = step("seaquest", play, 5)
        assert (marks("seaquest", play, BULLET), reward) == ([(4, 6)], 0)
        assert marks("seaquest", play, channel) == [(4, 7)]
        play, reward, over = step("seaquest", play)
        assert (marks("seaquest", play, BULLET), reward, over) == ([], 1, False)
        assert marks("seaquest", play, channel) == []


def test_seaquest_an_enemy_swims_into_a_bullet():
    play = situation("seaquest", right=True, **DIVE, **fish(7, 4, right=False, timer=0))
    play, reward, _ = step("seaquest", play, 5)
    assert (marks("seaquest", play, BULLET), marks("seaquest", play, FISH), reward) == ([], [], 1)


def test_seaquest_a_bullet_hits_a_fish_before_a_submarine():
    """Though the submarine is older; the next bullet hits that one."""
    both = fish(4, 4)["enemies"]
    both = both._replace(x=both.x.at[-2].set(4), y=both.y.at[-2].set(4), submarine=both.submarine.at[-2].set(True))
    both = both._replace(alive=both.alive.at[-2].set(True), timer=both.timer.at[-2].set(5))
    both = both._replace(shot_timer=both.shot_timer.at[-2].set(9))
    play, reward, _ = step("seaquest", situation("seaquest", enemies=both, **DIVE), 5)
    assert (reward, marks("seaquest", play, FISH), marks("seaquest", play, ENEMY_SUB)) == (1, [], [(4, 4)])
    game = play.game._replace(shot_timer=jnp.int32(0))
    play, reward, _ = step("seaquest", play._replace(game=game), 5)
    assert (reward, marks("seaquest", play, ENEMY_SUB)) == (1, [])


def test_seaquest_an_enemy_that_is_shot_may_still_shoot():
    bullet = newest("bullets", x=3, y=2, right=True, flying=True)
    enemy = fish(5, 2, right=False, timer=0, submarine=True, shot_timer=0)
    play, reward, over = step("seaquest", situation("seaquest", **DIVE, **bullet, **enemy))
    assert (reward, over, marks("seaquest", play, ENEMY_SUB)) == (1, False, [])
    assert marks("seaquest", play, ENEMY_BULLET) == [(2, 3)]


def test_seaquest_has_room_for_an_enemy_every_step():
    play = situation("seaquest", spawn_timer=0, spawn_interval=1, move_interval=2)
    for _ in range(60):
        play, _, _ = step("seaquest", play, 0, (0.0, 0.9, 0.0))
    assert marks("seaquest", play, FISH) == [(1, x) for x in range(10)]
    assert int(play.game.enemies.alive.sum()) == 29, "each leaves the board in the thirtieth step"


def test_seaquest_shoots_every_fifth_step():
    play, shots = situation("seaquest", **DIVE), []
    for _ in range(11):
        play, _, _ = step("seaquest", play, 5)
        shots.append((4, 4) in marks("seaquest", play, BULLET))
    assert [count for count, shot in enumerate(shots) if shot] == [0, 5, 10]
    assert marks("seaquest", play, BULLET) == [(4, 4)], "the one before left the board"


@pytest.mark.parametrize(
    ("enemy", "over"),
    [
        (fish(5, 4, timer=3), True),
        (fish(5, 4, timer=0), True),
        (fish(4, 4, timer=0), True),
        (fish(6, 4, right=False, timer=0), True),
        (fish(4, 4, timer=1), False),
        (fish(4, 3, timer=0), False),
        (fish(3, 4, submarine=True, shot_timer=0), False),
        (fish(4, 4, submarine=True, shot_timer=0), True),
        (fish(3, 4, submarine=True, shot_timer=9, bullet_x=4, bullet_flying=True), True),
    ],
)
def test_seaquest_enemies_and_their_bullets_end_the_game(enemy, over):
    """The submarine is at (4, 5)."""
    assert step("seaquest", situation("seaquest", **DIVE, **enemy))[1:] == (0, over)


def test_seaquest_enemy_submarines_shoot_every_eleventh_step():
    play, bullets = situation("seaquest", **fish(0, 4, submarine=True, shot_timer=10)), []
    for _ in range(23):
        play, _, _ = step("seaquest", play)
        bullets.append(marks("seaquest", play, ENEMY_BULLET))
    # It moves in steps 6, 12, 18 and shoots from where it is, in steps 11 and 22.
    assert bullets[10:20] == [[(4, x)] for x in range(2, 10)] + [[], []]
    assert bullets[21] == [(4, 4)]
    assert bullets[:10] == [[]] * 10


def test_seaquest_divers_come_aboard():
    play, _, _ = step("seaquest", situation("seaquest", crew=1, **DIVE, **diver(5, 4)))
    assert marks("seaquest", play, DIVER) == []
    assert marks("seaquest", play, CREW) == [(9, 7), (9, 8)]
    play, _, _ = step("seaquest", situation("seaquest", **DIVE, **diver(4, 4, timer=0)))
    assert int(play.game.crew) == 1
    play, _, _ = step("seaquest", situation("seaquest", crew=6, **DIVE, **diver(5, 4)))
    assert (int(play.game.crew), marks("seaquest", play, DIVER)) == (6, [(4, 5)])


def test_seaquest_the_latest_diver_takes_the_last_place():
    pair = diver(5, 4)["divers"]
    pair = pair._replace(**{name: getattr(pair, name)[::-1] | getattr(pair, name) for name in ("x", "y", "swimming")})
    play, _, _ = step("seaquest", situation("seaquest", crew=5, divers=pair, **DIVE))
    assert (int(play.game.crew), play.game.divers.swimming.tolist()) == (6, [True, False])


def test_seaquest_air():
    play = situation("seaquest", air=101, **DIVE)
    play, _, over = step("seaquest", play)
    assert (len(marks("seaquest", play, AIR)), over) == (5, False)
    assert len(marks("seaquest", step("seaquest", play)[0], AIR)) == 4
    play, _, over = step("seaquest", situation("seaquest", air=1, **DIVE))
    assert not over
    assert step("seaquest", play)[2], "no air is left"


@pytest.mark.parametrize(
    ("crew", "reward", "over", "crew_after", "air_after"),
    [
        (0, 0, True, 0, 139),
        (1, 0, False, 0, 200),
        (5, 0, False, 4, 200),
        (6, 6, False, -1, 200),
        (-1, 0, False, -2, 200),
    ],
)
def test_seaquest_surfacing(crew, reward, over, crew_after, air_after):
    """Six divers pay for the air that is left: 139 of 200 are six tenths and a bit."""
    before = situation("seaquest", y=1, crew=crew, air=139, surfaced=False)
    play, paid, ended = step("seaquest", before, 2)
    assert (paid, ended) == (reward, over)
    assert (int(play.game.crew), int(play.game.air)) == (crew_after, air_after)
    assert int(play.game.spawn_interval) == (20 if over else 19)
    if not over:
        again, paid, ended = step("seaquest", play)
        assert (paid, ended, int(again.game.crew)) == (0, False, crew_after), "staying there is free"


def test_seaquest_becomes_more_difficult_with_every_surfacing():
    play, seen = situation("seaquest", crew=-1, air=10**6), []
    for _ in range(25):
        play, _ = steps("seaquest", play, [4, 2])
        seen.append((int(play.game.spawn_interval), int(play.game.move_interval)))
    assert seen[:7] == [(19, 5), (18, 4), (17, 4), (16, 3), (15, 3), (14, 2), (13, 2)]
    assert seen[18:] == [(1, 2)] * 7


# Space Invaders


CANNON, ALIEN, ALIEN_LEFT, ALIEN_RIGHT, SHOT, ALIEN_SHOT = range(6)


def board(*cells):
    found = np.zeros((10, 10), bool)
    for cell in cells:
        found[cell] = True
    return found


def invaders(**changes):
    return situation("space_invaders", **changes)


def test_space_invaders_start():
    play = first("space_invaders")
    formation = [(y, x) for y in range(4) for x in range(2, 8)]
    assert marks("space_invaders", play, CANNON) == [(9, 5)]
    assert marks("space_invaders", play, ALIEN) == marks("space_invaders", play, ALIEN_LEFT) == formation
    assert marks("space_invaders", play, ALIEN_RIGHT) == []
    assert marks("space_invaders", steps("space_invaders", play, [1] * 6)[0], CANNON) == [(9, 0)]
    assert marks("space_invaders", steps("space_invaders", play, [2] * 6)[0], CANNON) == [(9, 9)]


def test_space_invaders_shoots_every_fifth_step():
    play, rows = first("space_invaders"), []
    for _ in range(6):
        play, _, _ = step("space_invaders", play, 3)
        rows.append([y for y, _ in marks("space_invaders", play, SHOT)])
    assert rows == [[8], [7], [6], [5], [4], [8]], "and in the sixth step the first shot hit"
    assert marks("space_invaders", play, ALIEN) == [(y, x) for y in range(4) for x in range(2, 8) if (y, x) != (3, 5)]


def test_space_invaders_a_bullet_kills_an_alien():
    play, reward, over = step("space_invaders", invaders(bullets=board((4, 5), (4, 9), (2, 3))))
    assert (reward, over) == (2, False)
    assert marks("space_invaders", play, SHOT) == [(3, 9)]
    assert len(marks("space_invaders", play, ALIEN)) == 22
    assert {(3, 5), (1, 3)}.isdisjoint(marks("space_invaders", play, ALIEN))


def test_space_invaders_aliens_move_in_the_thirteenth_step():
    play, _ = steps("space_invaders", invaders(x=9), [0] * 12)
    assert marks("space_invaders", play, ALIEN)[0] == (0, 2)
    play, _, _ = step("space_invaders", play)
    assert marks("space_invaders", play, ALIEN) == [(y, x) for y in range(4) for x in range(1, 7)]
    assert int(play.game.move_timer) == 11


def test_space_invaders_aliens_step_down_at_an_edge():
    for edge, right in ((0, False), (9, True)):
        play = invaders(aliens=board((3, edge), (5, 4)), right=right, move_timer=0)
        play, _, over = step("space_invaders", play)
        assert marks("space_invaders", play, ALIEN_LEFT if right else ALIEN_RIGHT) == sorted([(4, edge), (6, 4)])
        assert marks("space_invaders", play, ALIEN_RIGHT if right else ALIEN_LEFT) == []
        assert not over
        play, _, _ = step("space_invaders", play)
        assert (4, edge) in marks("space_invaders", play, ALIEN), "two of them move every second step"
        play, _, _ = step("space_invaders", play)
        assert marks("space_invaders", play, ALIEN) == sorted([(4, 8 if right else 1), (6, 3 if right else 5)])


def test_space_invaders_the_last_alien_moves_every_step():
    play, columns = invaders(aliens=board((3, 2)), right=True, move_timer=0), []
    for _ in range(9):
        play, _, _ = step("space_invaders", play)
        columns.append(marks("space_invaders", play, ALIEN)[0])
    assert columns == [(3, x) for x in range(3, 10)] + [(4, 9), (4, 8)]


@pytest.mark.parametrize(
    ("changes", "over"),
    [
        ({"aliens": board((9, 5))}, True),
        ({"aliens": board((9, 4)), "right": True, "move_timer": 0}, True),
        ({"aliens": board((9, 4)), "right": True, "move_timer": 1}, False),
        ({"aliens": board((9, 1), (0, 0)), "move_timer": 0}, True),
        ({"aliens": board((8, 5), (0, 0)), "move_timer": 0}, True),
        ({"aliens": board((8, 1), (0, 0)), "move_timer": 0}, False),
        ({"alien_bullets": board((8, 5))}, True),
        ({"alien_bullets": board((8, 4), (9, 5))}, False),
    ],
)
def test_space_invaders_ends(changes, over):
    """By an alien or a bullet at the cannon, or by aliens that step down from the lowest row."""
    assert step("space_invaders", invaders(**changes))[1:] == (0, over)


def test_space_invaders_bullet_that_left_the_board_is_gone():
    play = invaders(alien_bullets=board((9, 1)), bullets=board((0, 2)), aliens=board((5, 5)))
    play, _, _ = step("space_invaders", play)
    assert marks("space_invaders", play, ALIEN_SHOT) == marks("space_invaders", play, SHOT) == []


@pytest.mark.parametrize(
    ("aliens", "shooter"),
    [
        ([(2, 5), (6, 5), (8, 3)], (6, 5)),
        ([(2, 4), (3, 6)], (2, 4)),
        ([(2, 3), (3, 6)], (3, 6)),
        ([(7, 0)], (7, 0)),
    ],
)
def test_space_invaders_the_alien_nearest_to_the_cannon_shoots(aliens, shooter):
    play, _, _ = step("space_invaders", invaders(aliens=board(*aliens), alien_shot_timer=0))
    assert marks("space_invaders", play, ALIEN_SHOT) == [shooter]
    assert int(play.game.alien_shot_timer) == 9
    assert marks("space_invaders", step("space_invaders", play)[0], ALIEN_SHOT) == [(shooter[0] + 1, shooter[1])]


def test_space_invaders_aliens_shoot_in_the_eleventh_step():
    play, _ = steps("space_invaders", first("space_invaders"), [0] * 10)
    assert marks("space_invaders", play, ALIEN_SHOT) == []
    assert marks("space_invaders", step("space_invaders", play)[0], ALIEN_SHOT) == [(3, 5)]


def test_space_invaders_the_next_formation_is_faster():
    intervals = []
    play = first("space_invaders")
    for _ in range(8):
        game = play.game._replace(aliens=jnp.asarray(board((3, 8))), bullets=jnp.asarray(board((4, 8))))
        play, reward, _ = step("space_invaders", play._replace(game=game._replace(move_timer=jnp.int32(5))))
        assert (reward, len(marks("space_invaders", play, ALIEN))) == (1, 24)
        intervals.append(int(play.game.move_interval))
    assert intervals == [11, 10, 9, 8, 7, 6, 6, 6]


# Meetings, though the other moves on in the same step; and what sticks


def test_what_sticks_is_the_action_that_was_played():
    """Chosen 1, 2, 2; the last two do not get through: what was played, 1, is played three times."""
    go, _ = compiled("breakout")
    play = first("breakout")
    for action, luck in ((1, 0.5), (2, 0.05), (2, 0.05)):
        play, _, _ = go(play, jnp.int32(action), env_inputs([luck]))
    assert int(play.game.paddle) == 1


@pytest.mark.parametrize("game", NAMES)
def test_how_often_actions_stick_is_a_setting(game):
    """A number of 0.2 repeats the action before where sticky is 0.3, and not where it is 0.1 or 0."""
    for settings, stuck in (({"sticky": 0.3}, True), ({}, False), ({"sticky": 0.0}, False)):
        task = task_with(game, **settings)
        start = task.reset(env_inputs([0.0] * task.num_reset_uniforms))
        play, _, _ = task.step(start, jnp.int32(1), env_inputs([0.2] * task.num_step_uniforms))
        assert int(play.last_action) == (0 if stuck else 1)


def test_asterix_what_the_player_walks_into_counts_though_it_moves_on_in_the_same_step():
    for gold, outcome in (((), (0, True)), ((5,), (1, False))):
        play = situation("asterix", move_timer=0, **things({5: 6}, gold))
        assert step("asterix", play, 3)[1:] == outcome


def test_space_invaders_an_alien_at_the_cannon_ends_the_game_though_it_moves_on():
    play = invaders(aliens=board((9, 5)), right=True, move_timer=0)
    assert step("space_invaders", play)[1:] == (0, True)


def test_seaquest_a_bullet_where_the_submarine_is_ends_the_game_though_it_flies_on():
    enemy = fish(3, 4, submarine=True, shot_timer=9, bullet_x=5, bullet_flying=True)
    assert step("seaquest", situation("seaquest", **DIVE, **enemy))[1:] == (0, True)


def test_seaquest_a_diver_comes_aboard_though_he_would_swim_on():
    play, _, _ = step("seaquest", situation("seaquest", **DIVE, **diver(5, 4, timer=0)))
    assert (int(play.game.crew), marks("seaquest", play, 9)) == (1, [])


# Beside MinAtar itself


LENGTH = 8000
"""steps compared in each test"""


class Answers:
    """Stands in for MinAtar's random generator: answers from the uniform numbers that our game is given."""

    def __init__(self):
        self.uniforms, self.position = np.zeros(0, np.float32), 0

    def give(self, uniforms):
        self.uniforms, self.position = uniforms, 0

    def _next(self, size):
        taken = self.uniforms[self.position : self.position + (size or 1)]
        assert len(taken) == (size or 1), "MinAtar asks for more numbers than our game is given"
        self.position += len(taken)
        return taken if size else taken[0]

    def rand(self, size=None):
        return self._next(size)

    def randint(self, low, high=None, size=None):
        low, high = (0, low) if high is None else (low, high)
        return low + np.int64(self._next(size) * np.float32(high - low))


def reference(game):
    """MinAtar's environment and the numbers that it will draw."""
    minatar = pytest.importorskip("minatar")
    env, answers = minatar.Environment(game), Answers()
    env.random = env.env.random = answers
    if game == "seaquest":
        # Numbers for an enemy are set apart from those for a diver, whether or not an enemy comes.
        spawn_diver = env.env._spawn_diver

        def spawn():
            answers.position = 4
            spawn_diver()

        env.env._spawn_diver = spawn
    return env, answers


def restart(env, answers, uniforms):
    answers.give(uniforms)
    env.reset()
    env.last_action = 0  # MinAtar lets the last action of an episode stick in the first step of the next one


def keep_the_ball(env, rng):
    """Goes to where the ball comes down: its way to and fro between the walls is a circle of 20 columns."""
    nothing, left, right = range(3)
    if rng.random() < 0.02:
        return int(rng.integers(3))
    on_circle = (env.ball_x if env.ball_dir in (1, 2) else 19 - env.ball_x) + max(8 - env.ball_y, 0)
    column = min(on_circle % 20, 19 - on_circle % 20)
    return nothing if column == env.pos else left if column < env.pos else right


def mostly_up(env, rng):
    return 1 if rng.random() < 0.9 else int(rng.integers(3))


def mostly_fire(env, rng):
    return 3 if rng.random() < 0.4 else int(rng.integers(4))


def rescue(env, rng):
    """Collects six divers and surfaces, and then again and again until it is as difficult as can be."""
    nothing, left, up, right, down, fire = range(6)
    if rng.random() < 0.25 or (env.diver_count < 0 and env.e_spawn_speed == 1):
        return int(rng.choice([nothing, left, up, right, down, fire, fire, fire]))
    if env.diver_count < 0 or env.diver_count == 6 or (env.diver_count > 0 and env.oxygen < 50):
        return down if env.sub_y == 0 else up
    if not env.divers:
        return fire if env.sub_y > 1 else down
    x, y = env.divers[0][:2]
    if y != env.sub_y:
        return down if y > env.sub_y else up
    return right if x > env.sub_x else left


POLICIES = {
    "breakout": keep_the_ball,
    "freeway": mostly_up,
    "seaquest": rescue,
    "space_invaders": mostly_fire,
}


def recorded(game, length, endless, seed=0):
    """MinAtar's actions, draws and outcomes; endless: where it is over, it goes on as if it were not."""
    (env, answers), task = reference(game), task_of(game)
    rng = np.random.default_rng(seed)
    actions, minimal = [], env.minimal_action_set()
    assert len(minimal) == task.actions
    step_uniforms = rng.random((length, task.num_step_uniforms), np.float32)
    reset_uniforms = rng.random((length, task.num_reset_uniforms), np.float32)
    begins, before, after, rewards, ends, levels = [], [], [], [], [], []
    over, episode = True, -1
    for t in range(length):
        begins.append(over)
        if over:
            restart(env, answers, reset_uniforms[t])
            episode += 1
        before.append(env.state())
        # A random policy in every third episode: it meets other ends.
        skilled = game in POLICIES and episode % 3 < 2
        actions.append(POLICIES[game](env.env, rng) if skilled else int(rng.integers(task.actions)))
        answers.give(step_uniforms[t])
        reward, over = env.act(minimal[actions[-1]])
        after.append(env.state())
        rewards.append(reward)
        ends.append(over)
        levels.append(env.env.difficulty_ramp() or 0)
        if endless:
            over = env.env.terminal = False
    played = (np.array(begins), reset_uniforms, np.array(actions, np.int32), step_uniforms)
    return played, (np.array(before), np.array(after), np.array(rewards), np.array(ends)), np.array(levels)


@functools.cache
def replayed(game):
    """(begins, numbers for reset, actions, numbers for steps) -> the same outcomes by our game."""
    task = task_of(game)

    def advance(play, moment):
        begins, reset_uniforms, action, step_uniforms = moment
        play = jax.tree.map(functools.partial(jnp.where, begins), task.reset(env_inputs(reset_uniforms)), play)
        after, reward, over = task.step(play, action, env_inputs(step_uniforms))
        return after, (task.observe(play), task.observe(after), reward, over)

    return jax.jit(lambda moments: jax.lax.scan(advance, first(game), moments)[1])


def compared(game, length, endless, seed=0):
    """Every step is the same; and what the steps were like, to show that they went far."""
    played, expected, levels = recorded(game, length, endless, seed)
    found = replayed(game)(played)
    for what, theirs, ours in zip(("before", "after", "reward", "over"), expected, found, strict=True):
        differs = (theirs != np.asarray(ours)).reshape(length, -1).any(axis=1)
        assert not differs.any(), f"{what} differs in {differs.sum()} steps, first in step {differs.argmax()}"
    return played[0].sum(), expected, levels


@pytest.mark.parametrize(("game", "episodes"), [
    ("asterix", 50), ("breakout", 5), ("freeway", 4), ("seaquest", 30), ("space_invaders", 50),
])  # fmt: skip
def test_plays_like_minatar(game, episodes):
    """Episode after episode."""
    began, (_, _, rewards, ends), _ = compared(game, LENGTH, endless=False)
    assert began >= episodes
    assert ends.sum() >= began - 1
    assert rewards.sum() >= 20


def test_breakout_is_compared_with_new_bricks_too():
    _, (before, after, _, _), _ = compared("breakout", LENGTH, endless=False, seed=1)
    new = after[..., BRICK].sum(axis=(1, 2)) > before[..., BRICK].sum(axis=(1, 2))
    assert new.sum() >= 5


@pytest.mark.parametrize(("game", "level"), [("asterix", 9), ("seaquest", 19), ("space_invaders", 6)])
def test_plays_like_minatar_when_it_is_most_difficult(game, level):
    """Nobody survives there for long: deaths are compared, and then the game goes on."""
    _, (_, after, rewards, ends), levels = compared(game, LENGTH, endless=True)
    assert levels.max() == level, "as difficult as it becomes"
    assert (levels == level).sum() > LENGTH / 4
    assert 10 < ends.sum() < LENGTH
    if game == "seaquest":
        assert rewards.max() > 3, "six divers were paid for"
        assert after[..., ENEMY_BULLET].sum(axis=(1, 2)).max() > 3
