"""The paper's count of operations: its table from the shapes of the layers, and the same for runs of this library."""

import jax
import jax.numpy as jnp
import pytest

from iqrl.core.encoders import NATURE, Image
from iqrl.core.networks import Network, Output
from iqrl.diagnostics.analysis.flops import convolutions, dense, paper_flops, run_flops
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.base import Method, q_learner
from iqrl.methods.registry import METHODS

FEATURES = 7 * 7 * 64
"""that come out of the convolutions (Mnih et al. 2015)"""


def trunk(channels):
    """Operations of the convolutions."""
    return convolutions(Image(84, 84, channels), NATURE)


def head(outputs):
    """Each head has a hidden layer of its own."""
    return dense(FEATURES, 512) + dense(512, outputs)


def breakout_pflops(outputs, random_encoder, channels=12):
    """10 million steps, E and M rounded as the paper prints them: its totals come from the rounded ones."""
    encoder = round(trunk(channels), -3)
    count = paper_flops(
        updates=2_500_000,
        batch=32,
        steps=10_000_000,
        heads=4,
        encoder=encoder,
        head=round(head(outputs), -3),
        random_encoder=encoder if random_encoder else 0,
    )
    return round(count / 1e15, 3)


def test_layers_by_hand():
    assert dense(4, 64) == 512
    # 2 × 2 places, each a product of 3 · 3 · 5 inputs with 7 filters.
    assert convolutions(Image(5, 5, 5), ((3, 2, 7),)) == 2 * 4 * 45 * 7
    # Then 1 × 1 place of 2 · 2 · 7 inputs; two frames have twice the channels; zeros around make 3 × 3 places.
    assert convolutions(Image(5, 5, 5), ((3, 2, 7), (2, 1, 6))) == 2 * 4 * 45 * 7 + 2 * 28 * 6
    assert convolutions(Image(5, 5, 5, stack=2), ((3, 2, 7),)) == 2 * 4 * 90 * 7
    assert convolutions(Image(5, 5, 5), ((3, 2, 7),), "same") == 2 * 9 * 45 * 7


def test_the_papers_encoder_and_heads():
    assert trunk(12) == 28_581_888  # E = 28.582 MFLOPs: four frames of three colours each
    assert trunk(4) == 15_474_688  # what four grey frames take
    assert head(4) == 3_215_360  # M of DQN, Breakout's 4 actions
    assert head(4 * 51) == 3_420_160  # M of Rainbow, 51 atoms for each


@pytest.mark.parametrize(
    ("outputs", "random_encoder", "pflops", "with_four_channels"),
    [(4, False, 13.676, 9.351), (4, True, 13.962, 9.505), (204, False, 13.946, 9.621), (204, True, 14.232, 9.776)],
)
def test_the_papers_table(outputs, random_encoder, pflops, with_four_channels):
    assert breakout_pflops(outputs, random_encoder) == pflops
    assert breakout_pflops(outputs, random_encoder, channels=4) == with_four_channels


@pytest.mark.parametrize(
    ("settings", "updates_times_batch", "one_pass"),
    [
        ({"method": "dqn"}, 1800 * 32, 2 * (4 * 64 + 64 * 2)),
        ({"method": "iq"}, 1800 * 32, 2 * (4 * 64 + 3 * 64 * 2)),
        ({"method": "iq", "contexts": 5, "hidden": (16, 8)}, 1800 * 32, 2 * (4 * 16 + 16 * 8 + 5 * 8 * 2)),
        ({"method": "dqn", "dueling": True}, 1800 * 32, 2 * (4 * 64 + 64 * 3)),
        ({"method": "dqn", "buffer_size": 1}, 1800, 2 * (4 * 64 + 64 * 2)),
        ({"method": "dqn", "update_every": 4, "gradient_steps": 3}, 450 * 3 * 32, 2 * (4 * 64 + 64 * 2)),
        ({"method": "dqn", "sampling": "whole", "buffer_size": 50}, 1800 * 50, 2 * (4 * 64 + 64 * 2)),
    ],
)
def test_a_run_by_hand(small_run, settings, updates_times_batch, one_pass):
    run = small_run(**settings)
    assert run_flops(run, make_task(run)) == (4 * updates_times_batch + 2000) * one_pass


BREAKOUT = 2 * 8 * 8 * 9 * 4 * 16
"""of MinAtar: 8 × 8 places of 3 · 3 · 4 inputs, 16 filters"""


@pytest.mark.parametrize(
    ("method", "settings", "encoder", "head", "heads", "random"),
    [
        ("dqn", {}, BREAKOUT, 2 * (1024 * 128 + 128 * 3), 1, 0),
        ("dqn", {"hidden": (128, 64), "own_layers": 0}, BREAKOUT + 2 * (1024 * 128 + 128 * 64), 2 * 64 * 3, 1, 0),
        ("iq-te", {}, BREAKOUT, 2 * (1024 * 128 + 128 * 3), 4, 0),
        ("iq-re", {}, BREAKOUT, 2 * (1024 * 128 + 128 * 3), 4, BREAKOUT),
        ("rainbow-iq-re", {}, BREAKOUT, 2 * (1024 * 128 + 128 * 3 * 51), 4, BREAKOUT),
    ],
)
def test_a_run_on_images_by_hand(method, settings, encoder, head, heads, random):
    run = resolve("MinAtar/Breakout-v1", method, steps=9000, period=1000, **settings)
    updates = (9000 - 5000) // 4
    found = run_flops(run, make_task(run))
    assert found == (4 * updates * 32 + 9000) * (encoder + heads * head) + 9000 * random


def test_convolutions_of_ones_own_have_no_formula():
    class Net:
        init = staticmethod(lambda key, obs: jax.random.normal(key, (obs.size, 3)))
        apply = staticmethod(lambda params, obs: obs.reshape(-1) @ params)

    run = resolve("MinAtar/Breakout-v1", "dqn", network=Net)
    assert run_flops(run, make_task(run)) is None


def test_a_network_of_another_form_has_no_formula(small_run, monkeypatch):
    def own(run, task):
        of_state = lambda params, obs: Output((obs @ params)[None], (obs @ params)[None], obs)
        network = Network(lambda key: jax.random.normal(key, (4, 2)), of_state, jnp.asarray, 2)
        return q_learner(run, task, network=network)

    monkeypatch.setitem(METHODS, "own", Method("own", "", "", own))
    run = small_run(method="own")
    assert run_flops(run, make_task(run)) is None
