"""What a run costs: operations by the paper's formula and in the compiled program, and where its time goes."""

from __future__ import annotations

from typing import Any

from iqrl.analysis.compiled_flops import pieces_of
from iqrl.analysis.flops import run_flops
from iqrl.analysis.wallclock import wallclock_split
from iqrl.config import Run
from iqrl.errors import BadInput
from iqrl.training.loop import driver_of
from iqrl.training.store import RunStore, describe


def cost_of(run: Run) -> dict[str, Any]:
    """Numbers as `iqrl cost --json` prints them; `formula` and `ratio` are None where the formula does not apply."""
    driver = driver_of(run)
    if driver.task.host:
        raise BadInput(f"{run.task} is played outside the compiled program, whose cost alone can be told.")
    formula, pieces = run_flops(run, driver.task), pieces_of(driver)
    compiled = sum(piece.total for piece in pieces.values())
    # The formula knows nothing of measuring.
    learned = sum(piece.total for name, piece in pieces.items() if name != "measuring")
    split = wallclock_split(driver)
    total = sum(split.values())
    return {
        "flops_per_seed": {"formula": formula, "compiled": compiled, "ratio": formula and learned / formula},
        "flops_all_seeds": {"formula": formula and formula * run.seeds, "compiled": compiled * run.seeds},
        "pieces_per_seed": {name: {**piece._asdict(), "total": piece.total} for name, piece in pieces.items()},
        "microseconds_per_step": {**split, "total": total},
        "shares": {name: part / total for name, part in split.items()},
    }


def cost_report(of: RunStore | Run) -> tuple[dict[str, Any], list[str]]:
    """The cost of a run, or of the run in a store: for the machine, and as lines of text."""
    run = of.run if isinstance(of, RunStore) else of
    cost = cost_of(run)
    named = {"task": run.task, "method": run.method, "buffer_size": run.buffer_size, "seeds": run.seeds}
    return named | {"steps": run.steps} | cost, [describe(run), "", *_flops_lines(cost), "", *_time_lines(cost)]


def _flops_lines(cost: dict[str, Any]) -> list[str]:
    one, all_seeds = cost["flops_per_seed"], cost["flops_all_seeds"]
    row = lambda name, *cells: f"{name:<34}" + "".join(f"{cell:>16}" for cell in cells)
    lines = [row("floating-point operations", "one seed", "all seeds")]
    if one["formula"] is None:
        lines.append("  by the paper's formula: unknown, the network is not a trunk and heads")
    else:
        lines.append(row("  by the paper's formula", in_words(one["formula"]), in_words(all_seeds["formula"])))
    lines.append(row("  in the compiled program", in_words(one["compiled"]), in_words(all_seeds["compiled"])))
    if one["ratio"] is not None:
        what = "  the same, not measuring" if "measuring" in cost["pieces_per_seed"] else "  compiled"
        lines.append(row(f"{what} / formula", f"{one['ratio']:.2f}"))
    lines += ["", row("in the compiled program", "each time", "times", "one seed")]
    for name, piece in cost["pieces_per_seed"].items():
        lines.append(row(f"  {name}", in_words(piece["flops"]), f"{piece['times']:,}", in_words(piece["total"])))
    return lines


def _time_lines(cost: dict[str, Any]) -> list[str]:
    split, shares = cost["microseconds_per_step"], cost["shares"]
    lines = ["a step of all seeds, while learning:  microseconds   share"]
    for name, share in shares.items():
        lines.append(f"  {name.replace('_', ' '):<34}{split[name]:>15.2f}{share:>8.0%}")
    return [*lines, f"  {'together':<34}{split['total']:>15.2f}"]


PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z")


def in_words(flops: float) -> str:
    """Four digits and a prefix.

    >>> in_words(13.962e15), in_words(512e9), in_words(0)
    ('13.96 PFLOPs', '512 GFLOPs', '0 FLOPs')
    """
    power = min((len(str(int(flops))) - 1) // 3, len(PREFIXES) - 1)
    return f"{flops / 1000**power:.4g} {PREFIXES[power]}FLOPs"
