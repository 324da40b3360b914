"""The settings of a run on the command line: a flag for every field of `iqrl.config.Run`, and files of them."""

from __future__ import annotations

import argparse
import json
import tomllib
import typing
from pathlib import Path
from typing import Any, Literal

from iqrl.config import GROUPS, OPTIONS, REQUIRED, TYPES, check_names, checked, fields_of, is_union
from iqrl.errors import BadInput


def whole(text: str) -> int:
    try:
        number = float(text.replace(",", ""))
        if number.is_integer():
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")


def _whole_or(word: str) -> typing.Callable[[str], int | str]:
    def parse(text: str) -> int | str:
        try:
            return word if text == word else whole(text)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(f"{error}, nor {word}") from None

    return parse


def fraction(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Every field of `Run` as a flag; a flag not given leaves the decision to preset, file and default."""
    for group in GROUPS:
        section = parser.add_argument_group(group.__doc__)
        for field in fields_of(group):
            section.add_argument(
                "--" + field.name.replace("_", "-"),
                default=argparse.SUPPRESS,
                help=_help(field.metadata, field.default),
                **_value_kind(TYPES[field.name]),
            )


def _help(metadata: typing.Mapping[str, Any], default: Any) -> str:
    shown = " ".join(map(str, default)) if isinstance(default, tuple) else default
    notes = [] if default in (None, REQUIRED) else [f"default: {shown}"]
    notes += [f"paper: {metadata['paper']}"] if metadata["paper"] else []
    return metadata["help"].replace("%", "%%") + (f" ({'; '.join(notes)})".replace("%", "%%") if notes else "")


def _value_kind(hint: Any) -> dict[str, Any]:
    if is_union(hint):
        hint, alternative = typing.get_args(hint)
        if alternative is not type(None):
            return {"type": _whole_or(*typing.get_args(alternative)), "metavar": "N"}
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    if typing.get_origin(hint) is Literal:
        return {"metavar": "|".join(typing.get_args(hint))}
    if typing.get_origin(hint) is tuple:
        return {"nargs": "+", **_value_kind(typing.get_args(hint)[0])}
    return {"type": whole, "metavar": "N"} if hint is int else {"type": fraction, "metavar": "X"}


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", help="cpu, gpu or tpu (default: the best that JAX finds)")


def read_config(path: Path) -> dict[str, Any]:
    """Settings from a TOML or JSON file; tables only group, their names do not matter."""
    try:
        text = path.read_text()
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read {path}: {getattr(error, 'strerror', None) or error}.") from error
    except ValueError as error:
        raise BadInput(f"{path} is not valid {'JSON' if path.suffix == '.json' else 'TOML'}: {error}.") from error
    if not isinstance(content, dict):
        raise BadInput(f"{path} must hold names and values.")
    settings: dict[str, Any] = {}
    if isinstance(content.get("config"), dict):  # a run.json is a config file too, with every default written out
        content = _without_defaults(content["config"])
    for name, value in content.items():
        settings |= value if isinstance(value, dict) else {name: value}
    settings = {name: value for name, value in settings.items() if value is not None}
    try:
        check_names(set(settings) - {"preset"})
        return settings | {name: checked(OPTIONS[name], settings[name]) for name in settings if name in OPTIONS}
    except BadInput as error:
        raise BadInput(f"in {path}: {error}") from None


def _without_defaults(config: dict[str, Any]) -> dict[str, Any]:
    """What a run's settings say beyond the defaults of its method."""
    from iqrl.methods import find_method

    method = find_method(config["method"]) if "method" in config else None
    defaults = {name: field.default for name, field in OPTIONS.items()}
    defaults |= {**method.defaults, **method.fixed} if method else {}
    as_json = lambda value: list(value) if isinstance(value, tuple) else value
    return {name: value for name, value in config.items() if value != as_json(defaults.get(name, REQUIRED))}
