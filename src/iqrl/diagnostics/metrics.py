"""The one list of what a run can report: what each metric is called and what it means.

A metric is a column of `metrics.parquet`, with one row per seed and period. Reports, charts, `iqrl explain`, the
documentation and the Stable-Baselines3 callback take names and labels from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Group = Literal["training", "interference", "TD errors", "held-out states", "contexts"]
Shape = Literal["number", "per context", "per head", "context × context"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    name: str
    """the column of `metrics.parquet`"""
    label: str
    """as it stands in a sentence or on an axis"""
    meaning: str
    """one sentence, for the documentation"""
    group: Group
    shape: Shape = "number"
    """the entry of one seed and one period"""
    unit: str = ""
    heading: str = ""
    """one word for the head of a table's column; the label if empty"""
    higher_is_worse: bool | None = None
    """None where neither direction is better"""
    source: str = ""


REGULARISER = "<regulariser>"
"""stands for the name of any regulariser: `distillation_loss` is `<regulariser>_loss`"""

METRICS: tuple[Metric, ...] = (
    # In every run
    Metric(
        name="return",
        label="return of training episodes",
        meaning="mean return of the episodes that ended in the period; NaN if none did",
        group="training",
        unit="reward",
        higher_is_worse=False,
    ),
    Metric(
        name="episodes",
        label="episodes",
        meaning="how many episodes ended in the period",
        group="training",
    ),
    Metric(
        name="value_loss",
        label="value loss",
        meaning="mean loss of the values over the batches of the period, without regularisers",
        group="training",
        unit="loss",
    ),
    Metric(
        name="max_q",
        label="max-Q on the batches",
        meaning="mean of max_a Q over the batches of the period",
        group="training",
        unit="reward",
    ),
    Metric(
        name="epsilon",
        label="exploration rate ε",
        meaning="probability of a random action at the end of the period",
        group="training",
        unit="share",
    ),
    Metric(
        name=f"{REGULARISER}_loss",
        label=f"{REGULARISER} loss",
        meaning="mean of a regulariser over the batches of the period, before its weight",
        group="training",
        unit="loss",
    ),
    Metric(
        name=f"{REGULARISER}_weight",
        label=f"{REGULARISER} weight",
        meaning="weight of that regulariser in the loss at the end of the period",
        group="training",
    ),
    Metric(
        name="occupancy",
        label="occupancy of the contexts",
        meaning="share of the steps of the period in each context",
        group="contexts",
        shape="per context",
        unit="share",
    ),
    # With --measure-every
    Metric(
        name="aei",
        label="AEI",
        meaning="Approximate Expected Interference: mean of δ(θ_t)² − δ(θ_{t−1})² on the last `measure_recent` "
        "transitions (`measure_sample` of them, evenly spaced), the same network in both places of δ; the mean over "
        "the measured updates of the period",
        group="interference",
        unit="reward²",
        higher_is_worse=True,
        source="the paper, eq. 5, after Liu et al. 2020",
    ),
    Metric(
        name="negative_interference",
        label="negative interference",
        meaning="mean AEI of the updates that raised the error, as in the paper's curves; NaN if no update did",
        group="interference",
        unit="reward²",
        heading="negative",
        higher_is_worse=True,
        source="the paper, appendix",
    ),
    Metric(
        name="raised_share",
        label="share of updates that raised the TD error",
        meaning="share of the measured updates whose AEI is above 0",
        group="interference",
        unit="share",
        heading="raising",
        higher_is_worse=True,
    ),
    Metric(
        name="aei_largest",
        label="largest AEI",
        meaning="largest AEI of a measured update of the period",
        group="interference",
        unit="reward²",
        heading="largest",
        higher_is_worse=True,
    ),
    Metric(
        name="squared_td_error",
        label="squared TD error",
        meaning="mean δ² on the same transitions, before the update",
        group="TD errors",
        unit="reward²",
    ),
    Metric(
        name="aei_contexts",
        label="AEI of each context",
        meaning="AEI over the transitions of each context",
        group="interference",
        shape="per context",
        unit="reward²",
        higher_is_worse=True,
    ),
    Metric(
        name="update_interference",
        label="update interference",
        meaning="mean over updates of max(E[δ² after − δ² before], 0) on transitions of the whole past, a "
        "reservoir of `measure_reservoir` (`measure_sample` of them), both errors with the same target network",
        group="interference",
        unit="reward²",
        higher_is_worse=True,
        source="Liu et al. 2023",
    ),
    Metric(
        name="gradient_inner",
        label="inner product of the contexts' gradients",
        meaning="inner product of the mean gradients of the Huber TD loss of each pair of contexts, on the reservoir, "
        "at the end of the period",
        group="interference",
        shape="context × context",
        higher_is_worse=False,
        source="Bengio et al. 2020; Liu et al. 2023",
    ),
    Metric(
        name="gradient_cosine",
        label="cosine of the contexts' gradients",
        meaning="cosine between the mean gradients of each pair of contexts; below 0, a step for one raises the loss "
        "of the other",
        group="interference",
        shape="context × context",
        higher_is_worse=False,
        source="Bengio et al. 2020; Liu et al. 2023",
    ),
    Metric(
        name="held_out_max_q",
        label="max-Q on held-out states",
        meaning="mean of max_a Q on the held-out states: 1000 states that a random policy visited before training",
        group="held-out states",
        unit="reward",
        source="Mnih et al. 2013; the paper",
    ),
    Metric(
        name="held_out_max_q_heads",
        label="max-Q of each head on held-out states",
        meaning="mean of max_a Q on the held-out states, for each head",
        group="held-out states",
        shape="per head",
        unit="reward",
        source="the paper",
    ),
    Metric(
        name="action_gap",
        label="action gap",
        meaning="mean value of the best action above the second best, on the held-out states",
        group="held-out states",
        unit="reward",
    ),
    Metric(
        name="dormant_units",
        label="share of dormant units",
        meaning="share of the last hidden layer's units whose mean activation on the held-out states is at most "
        "2.5% of the layer's",
        group="held-out states",
        unit="share",
        heading="dormant",
        higher_is_worse=True,
        source="Sokar et al. 2023",
    ),
    Metric(
        name="centroid_movement",
        label="movement of a centroid",
        meaning="how far each centroid moved in the period; only for methods whose centroids move",
        group="contexts",
        shape="per context",
        unit="scaled distance",
    ),
)

SUMMARIES: tuple[Metric, ...] = (
    Metric(
        name="relative_interference",
        label="negative interference relative to the squared TD error",
        meaning="mean over periods of `negative_interference` / `squared_td_error`; it compares methods whose values "
        "differ in size",
        group="interference",
        unit="share",
        heading="relative",
        higher_is_worse=True,
    ),
    Metric(
        name="relative_aei",
        label="AEI relative to the squared TD error",
        meaning="mean over periods of `aei` / `squared_td_error`; below 0, the updates lower the error on average",
        group="interference",
        unit="share",
        heading="signed",
        higher_is_worse=True,
    ),
    Metric(
        name="interference_across_iterations",
        label="iteration interference, 0.9 tail",
        meaning="mean of the largest tenth of `update_interference` over the last half of the periods",
        group="interference",
        unit="reward²",
        heading="tail",
        higher_is_worse=True,
        source="Liu et al. 2023",
    ),
    Metric(
        name="lowest_gradient_cosine",
        label="lowest cosine of two contexts' gradients",
        meaning="lowest `gradient_cosine` of a pair of contexts, averaged over the last half of the periods",
        group="interference",
        heading="cosine",
        higher_is_worse=False,
    ),
)
"""what `iqrl interference` computes from the columns of a whole run"""

KEYS = ("seed", "step")
"""the columns that say which row it is"""

_BY_NAME = {metric.name: metric for metric in (*METRICS, *SUMMARIES)}


def find_metric(name: str) -> Metric | None:
    """The entry of a column, with the regulariser's own name in it; None if the list has none.

    >>> find_metric("distillation_loss").label, find_metric("value_loss").label, find_metric("speed")
    ('distillation loss', 'value loss', None)
    """
    if name in _BY_NAME:
        return _BY_NAME[name]
    for ending in ("_loss", "_weight"):
        if name.endswith(ending):
            return _fill_pattern(_BY_NAME[REGULARISER + ending], name.removesuffix(ending))
    return None


def sort_columns(names: Iterable[str]) -> list[str]:
    """In the order of the list; what is not in it comes last.

    >>> sort_columns(["occupancy", "mine", "distillation_weight", "distillation_loss", "return"])
    ['return', 'distillation_loss', 'distillation_weight', 'occupancy', 'mine']
    """
    places = {metric.name: place for place, metric in enumerate(METRICS)}

    def place(name: str) -> int:
        pattern = next((REGULARISER + end for end in ("_loss", "_weight") if name.endswith(end)), name)
        return places.get(name, places.get(pattern, len(places)))

    return sorted(names, key=place)


def _fill_pattern(metric: Metric, regulariser: str) -> Metric:
    fill = lambda text: text.replace(REGULARISER, regulariser)
    return replace(metric, name=fill(metric.name), label=fill(metric.label))


def label_of(name: str) -> str:
    """The label of a metric; its name in words if the list does not have it."""
    metric = find_metric(name)
    return metric.label if metric else name.replace("_", " ")


def heading_of(name: str) -> str:
    """The head of a table's column."""
    metric = find_metric(name)
    return metric.heading if metric and metric.heading else label_of(name)


def check_listed(names: Iterable[str]) -> None:
    """A metric that is reported must be in the list."""
    missing = [name for name in names if find_metric(name) is None]
    if missing:
        raise ValueError(f"{', '.join(missing)} must have an entry in iqrl.diagnostics.metrics.METRICS.")


def metrics_table() -> str:
    """The list as a table in Markdown, for the documentation."""
    rows = [(f"`{it.name}`", it.meaning, it.shape, it.unit, it.source) for it in METRICS]
    return _markdown(("column", "what it is", "shape", "unit", "source"), rows)


def summaries_table() -> str:
    """What `iqrl interference` adds, as a table in Markdown."""
    rows = [(it.heading, f"`{it.name}`", it.meaning, it.unit, it.source) for it in SUMMARIES]
    return _markdown(("in the table", "with `--json`", "what it is", "unit", "source"), rows)


def _markdown(names: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(names)} |", "|" + "---|" * len(names), *lines])
