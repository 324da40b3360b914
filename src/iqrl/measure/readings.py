"""Readings of interference and the returns beside them, by period."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from iqrl.errors import BadInput

RAISED = pl.col("aei") > 0

MEASURES = {
    "aei": pl.col("aei").mean(),
    "negative_interference": pl.col("aei").filter(RAISED).mean().fill_null(float("nan")),
    "raised_share": RAISED.mean(),
    "aei_largest": pl.col("aei").max(),
    "squared_td_error": pl.col("squared_td_error").mean(),
}
"""over the updates of a period; `negative_interference` is over those that raised the error, NaN if none did"""


@dataclass
class Readings:
    """One entry per measured update, one per episode that ended."""

    steps: list[int] = field(default_factory=list)
    aei: list[float] = field(default_factory=list)
    squared_td_error: list[float] = field(default_factory=list)
    episode_steps: list[int] = field(default_factory=list)
    episode_returns: list[float] = field(default_factory=list)

    def frame(self, period: int) -> pl.DataFrame:
        """A row per period of that many steps: null where no episode ended or no update was measured."""
        if not isinstance(period, int) or period < 1:
            raise BadInput(f"a period is a whole number of steps, at least 1, got {period!r}.")
        last = max([0, *self.steps, *self.episode_steps])
        ends = pl.DataFrame({"end": range(period, last + period, period)}, schema={"end": pl.Int64})
        # A period's end belongs to it; step 0 belongs to the first.
        end = pl.max_horizontal((pl.col("step") + period - 1) // period, 1) * period
        returns = self._episodes().group_by(end=end).agg(pl.col("return").mean())
        measures = self._updates().group_by(end=end).agg(**MEASURES)
        table = ends.join(returns, on="end", how="left").join(measures, on="end", how="left").sort("end")
        return table.select(pl.min_horizontal("end", last).alias("step"), "return", *MEASURES)

    def _episodes(self) -> pl.DataFrame:
        schema = {"step": pl.Int64, "return": pl.Float64}
        return pl.DataFrame({"step": self.episode_steps, "return": self.episode_returns}, schema=schema)

    def _updates(self) -> pl.DataFrame:
        columns = {"step": self.steps, "aei": self.aei, "squared_td_error": self.squared_td_error}
        return pl.DataFrame(columns, schema={"step": pl.Int64, "aei": pl.Float64, "squared_td_error": pl.Float64})
