"""The numbers of the pages of results again: NumPy, and nothing of the library."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl

ROOT = Path(__file__).parents[2]

RANGE = {
    "CartPole-v0": 200 - 9, "CartPole-v1": 500 - 9, "Acrobot-v1": 500 - 80, "Pendulum-v0": 1600 - 130,
    "MountainCar-v0": 200 - 100, "MountainCar": 1000 - 100,
}  # fmt: skip
LOWEST = {
    "CartPole-v0": 9, "CartPole-v1": 9, "Acrobot-v1": -500, "Pendulum-v0": -1600, "MountainCar-v0": -200,
    "MountainCar": -1000,
}  # fmt: skip


def runs_of(study):
    """Each run's record in the manifest, and its returns [seeds, periods]."""
    folder = ROOT / "results" / study
    rows = pl.read_parquet(folder / "curves.parquet").sort("seed", "step")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest = manifest if "runs" in manifest else next(value for value in manifest.values() if "runs" in value)
    for run in manifest["runs"]:
        own = rows.filter((pl.col("run") == run["id"]) & (pl.col("variant") == run["variant"]))
        yield run, own["return"].cast(pl.Float64).to_numpy().reshape(own["seed"].n_unique(), -1)


def curves_of(*studies):
    """(variant, task, method, N) -> the returns of all seeds, for studies that vary nothing else."""
    table = {}
    for run, returns in (each for study in studies for each in runs_of(study)):
        name = (run["variant"], *[run["config"][key] for key in ("task", "method", "buffer_size")])
        table[name] = np.concatenate([table[name], returns]) if name in table else returns
    return table


def final_of(curves):
    return np.nanmean(curves[:, -(curves.shape[1] // 10) :], axis=1)


NUMBERS = {
    "final": final_of,
    "AUC": lambda curves: np.nanmean(curves, axis=1),
    "deterioration": lambda curves: np.nanmax(curves, axis=1) - final_of(curves),
}


def rows_between(page, start, end):
    """The rows of all tables from one text to another, each a dictionary by header."""
    part = page[page.index(start) :]
    part = part[: part.index(end, len(start))].replace("**", "").replace("\\", "")
    for table in re.findall(r"(?:^\|.*\n?)+", part, re.M):
        head, _, *rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines()]
        yield from (dict(zip(head, row, strict=True)) for row in rows)


def number(text):
    return float(re.match(r"[-+]?[\d.,]+", text.replace("−", "-"))[0].replace(",", ""))


def near(shown, exact):
    """Equal to the last digit that is shown."""
    digits = len(re.match(r"[-−+]?\d+\.?(\d*)", shown)[1])
    return abs(number(shown) - exact) <= 0.5001 * 10**-digits
