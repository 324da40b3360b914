"""The re-analysis as plain data, for `--json`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from iqrl.paper.reanalysis import Reanalysis
from iqrl.paper.settings import Pair, Setting

SHOWN = ("matches", "printed_from", "share")
"""what records work out themselves and readers want to have too"""


def as_numbers(found: Reanalysis) -> dict[str, Any]:
    return {field.name: _plain(getattr(found, field.name)) for field in fields(found)}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (Setting, Pair)):
        return value._asdict()
    if hasattr(value, "_asdict"):
        worked_out = {name: getattr(value, name) for name in SHOWN if hasattr(value, name)}
        return {name: _plain(part) for name, part in value._asdict().items()} | worked_out
    return [_plain(part) for part in value] if isinstance(value, (list, tuple)) else value
