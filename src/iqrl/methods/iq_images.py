"""IQ on images: contexts are clusters of embeddings, not of pixels (Zhang et al. 2022).

iq-re  embeddings by a random encoder, drawn once and never trained
iq-te  embeddings by the convolutions of the network itself, as they are at the time
"""

from __future__ import annotations

from typing import Any

from iqrl.core import scaling
from iqrl.core.agent import QLearner
from iqrl.core.contexts import ContextDivision, by_random_encoder, by_trained_encoder
from iqrl.core.contexts.sequential_kmeans import sequential_kmeans
from iqrl.core.encoders import convolutional, random_encoder
from iqrl.envs.base import Task
from iqrl.errors import BadInput
from iqrl.methods.base import Method, encoder_before_layers, q_learner
from iqrl.methods.iq import IQ_SETTINGS, ONE_HEAD, settle_number, weighted_distillation
from iqrl.settings import Run, Settings, setting


class EncoderSettings(Settings):
    """embeddings of images"""

    code_size: int = setting(50, "numbers in an embedding by the random encoder", minimum=1, paper="50")


def skm_of_embeddings(run: Run, size: int) -> ContextDivision:
    """Sequential K-means over embeddings, whose range is not known beforehand."""
    if run.context_scaling == "task":
        raise BadInput(f"context_scaling task is for states; {run.method} takes running or none.")
    scale = {"running": scaling.running, "none": scaling.unscaled}[run.context_scaling](size)
    live = run.context_target == "live"
    return sequential_kmeans(run.k, (0.0,) * size, (1.0,) * size, scale, run.learning_starts, live=live)


def random_embeddings(run: Run, task: Task) -> ContextDivision:
    image: Any = task.image
    structure = convolutional(image, task.layers, run.padding)
    encoder = random_encoder(structure, run.code_size)
    return by_random_encoder(skm_of_embeddings(run, encoder.size), encoder)


def trained_embeddings(run: Run, task: Task) -> ContextDivision:
    features: Any = encoder_before_layers(run, task)
    return by_trained_encoder(
        skm_of_embeddings(run, features.size), lambda params, obs: features.apply(params["encoder"], obs)
    )


def iq_re(run: Run, task: Task) -> QLearner:
    return q_learner(run, task, division=random_embeddings(run, task), regularisers=weighted_distillation(run))


def iq_te(run: Run, task: Task) -> QLearner:
    return q_learner(run, task, division=trained_embeddings(run, task), regularisers=weighted_distillation(run))


IMAGE_DEFAULTS = {"contexts": 4, "context_scaling": "none"}
AS_RELEASED = ONE_HEAD | {"own_layers": 0, "padding": "same"}
"""the authors' code: λ is 0 and the k heads share one set of weights, so that there is one"""
RELEASED_LAYER = 128
"""units of a shared layer before the heads, which the code's DQN and Rainbow do not have"""
ONLY_KMEANS = {"context_init": "kmeans", "centroids": ()}
"""the embeddings of an encoder are not known before there are any"""

METHODS = (
    Method(
        name="iq-re",
        summary="IQ on images: contexts in the space of a random encoder",
        paper="Zhang et al. 2022",
        build=iq_re,
        settings=(*IQ_SETTINGS, EncoderSettings),
        defaults=IMAGE_DEFAULTS,
        presets={"as-released": AS_RELEASED},
        fixed=ONLY_KMEANS,
        settle=settle_number,
        observations="images",
        reduces_to=("dqn", ONE_HEAD),
    ),
    Method(
        name="iq-te",
        summary="IQ on images: contexts in the space of the network's own convolutions",
        paper="Zhang et al. 2022, comparison of encoders",
        build=iq_te,
        settings=IQ_SETTINGS,
        defaults=IMAGE_DEFAULTS,
        fixed=ONLY_KMEANS,
        settle=settle_number,
        observations="images",
        covered_by=("iq-re",),
    ),
)
