"""The settings of a run on the command line: a flag for every field of `iqrl.settings.Run`, and files of settings."""

from __future__ import annotations

import argparse
import contextlib
import tomllib
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from iqrl.cli.flags import decimal, whole
from iqrl.errors import BadInput, shown, unknown
from iqrl.files import parse_json, read_text
from iqrl.other_names import name_here
from iqrl.plugins import trust
from iqrl.settings import COMMON, REQUIRED, fields_of, is_union, settings_of, types_of

if TYPE_CHECKING:
    from iqrl.methods.base import Method

NAMES = ("task", "method", "preset")
"""what a file of settings may name beside settings"""


class Request(NamedTuple):
    """The run that flags and a file of settings describe."""

    task: str
    method: str | None
    preset: str | None
    settings: dict[str, Any]


def read_request(options: argparse.Namespace) -> Request:
    """The settings of the file, and those of the flags over them."""
    content, tables = read_file(options.config) if options.config else File({}, ())
    given = {name: value for name, value in vars(options).items() if value is not None}
    names: dict[str, Any] = {"method": None, "preset": None} | _select(content, *NAMES) | _select(given, *NAMES)
    if "task" not in names:
        raise BadInput("which task? name one, such as CartPole-v0; see iqrl list tasks.")

    from iqrl.make_run import groups_for

    trust(name for name in (names["task"], names["method"] or "") if ":" in name)
    groups = groups_for(names["task"], names["method"])
    settings = check_file(content, tables, groups, options.config) | _select(given, *settings_of(groups))
    return Request(**names, settings=settings)


# Flags


class Flags(NamedTuple):
    """The settings that are flags of `iqrl train`."""

    groups: tuple[type, ...] = COMMON
    method: str | None = None
    """whose help is asked for: its own defaults are shown, and what it decides itself is not"""
    task: str | None = None
    """whose defaults are shown too, where it is one of the library's"""


HELP, HELP_ALL = ("-h", "--help"), "--help-all"


def flags_of_train(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> Flags:
    """The flags of `iqrl train`, given its parser with the common groups alone.

    The common groups suffice while no other flag is given. The help is that of a method, and other flags need those of
    all methods and tasks: both are declared where JAX is imported. Those of a method or task of the user's own are in
    the user's file.
    """
    plain = [argument for argument in arguments if argument not in (*HELP, HELP_ALL)]
    options, rest = parser.parse_known_args(plain)
    helped = any(argument in HELP for argument in arguments)
    if HELP_ALL not in arguments and not any(argument.startswith("-") for argument in rest):
        if not helped:
            return Flags()
        if ":" not in (options.method or ""):
            return _flags_in_help(options.task, options.method)
    if not any(":" in argument for argument in plain):  # nobody's own setting may have such a name
        _refuse_other_names(rest, options.parser.flags)

    from iqrl.make_run import groups_for

    named = _select(read_file(options.config).settings, "task", "method") if options.config else {}
    # The value of a flag that is not known yet, such as JSON, may stand where the task is looked for.
    words = [word for word in (options.task, *rest, named.get("task")) if word is not None]
    own_tasks = [word for word in words if ":" in word and not word.startswith(("-", "{"))]
    method = options.method or named.get("method")
    trust(name for name in (*own_tasks[:1], method or "") if ":" in name)
    return Flags(groups_for(own_tasks[0] if own_tasks else None, method))


def _flags_in_help(task: str | None, method: str | None) -> Flags:
    """Those of one method first, and of the task if it is named."""
    from iqrl.envs.registry import HOSTED, TASKS, groups_of_task
    from iqrl.methods.registry import RECOMMENDED, find_method

    images = task is not None and task.startswith(("ALE/", "MinAtar/"))
    method = method or RECOMMENDED["images" if images else "vectors"]
    found = find_method(method)
    of_task = () if task is None else HOSTED if ":" in task else groups_of_task(task)
    groups = (*found.settings, *of_task, *COMMON)
    return Flags(tuple(dict.fromkeys(groups)), method, task if task in TASKS else None)


def defaults_in_help(method: Method, task: str | None) -> Mapping[str, Any]:
    """Those of a run, where the task is known. Else the method's own, and in words what follows from the task."""
    if task is not None:
        from iqrl.make_run import resolve

        with contextlib.suppress(BadInput):  # a method that is not for such tasks has a help as well
            return vars(resolve(task, method.name))
    return {**method.defaults, **method.settled}


def _refuse_other_names(rest: Iterable[str], flags: Sequence[str]) -> None:
    """What another library calls a setting is answered at once."""
    for argument in rest:
        if argument.startswith("--") and name_here(argument.partition("=")[0], flags):
            raise unknown("argument", argument.partition("=")[0], flags)


def add_settings(
    parser: argparse.ArgumentParser, groups: Iterable[type], method: Method | None = None, task: str | None = None
) -> None:
    """Every field of the groups as a flag. A flag that is not given is absent from the options, so file and preset
    decide. With a method: the defaults that it has, on that task, without what it decides itself."""
    groups = tuple(groups)
    types = types_of(groups)
    defaults, fixed = ({}, {}) if method is None else (defaults_in_help(method, task), method.fixed)
    for group in groups:
        fields = [field for field in fields_of(group) if field.name not in fixed]
        section = parser.add_argument_group(group.__doc__) if fields else parser
        for field in fields:
            section.add_argument(
                "--" + field.name.replace("_", "-"),
                default=argparse.SUPPRESS,
                help=_help(field.metadata, defaults.get(field.name, field.default)),
                **_value_kind(types[field.name]),
            )


def _help(metadata: Mapping[str, Any], default: Any) -> str:
    notes = [] if default in (None, REQUIRED, "") or callable(default) else [f"default: {_default_text(default)}"]
    notes += [f"paper: {metadata['paper']}"] if metadata["paper"] else []
    return metadata["help"].replace("%", "%%") + (f" ({'; '.join(notes)})".replace("%", "%%") if notes else "")


def _default_text(default: Any) -> str:
    """
    >>> _default_text(False), _default_text((64, 64)), _default_text(50_000), _default_text(5e-4)
    ('no', '64 64', '50,000', '0.0005')
    """
    if isinstance(default, bool):
        return "yes" if default else "no"
    if isinstance(default, tuple):
        return " ".join(map(str, default))
    return f"{default:,}" if isinstance(default, int) else f"{default:g}" if isinstance(default, float) else default


def _value_kind(hint: Any) -> dict[str, Any]:
    """The arguments of `add_argument` for values of this type."""
    if is_union(hint):
        hint, alternative = typing.get_args(hint)
        if alternative is not type(None):
            numbers, metavar = _number_kind(hint)
            return {"type": _number_or(numbers, *typing.get_args(alternative)), "metavar": metavar}
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    if hint is str:
        return {"metavar": "TEXT"}
    if typing.get_origin(hint) is Literal:
        return {"metavar": "|".join(typing.get_args(hint))}
    if typing.get_origin(hint) is tuple:
        return {"nargs": "+", **_value_kind(typing.get_args(hint)[0])}
    numbers, metavar = _number_kind(hint)
    return {"type": numbers, "metavar": metavar}


def _number_kind(hint: type) -> tuple[Callable[[str], float], str]:
    return (whole, "N") if hint is int else (decimal, "X")


def _number_or(number: Callable[[str], float], name: str) -> Callable[[str], float | str]:
    def parse(text: str) -> float | str:
        try:
            return name if text == name else number(text)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(f"{error}, nor {name}") from None

    return parse


# Files


class File(NamedTuple):
    settings: dict[str, Any]
    tables: tuple[str, ...]
    """names of tables, which only group settings"""


def read_file(path: Path) -> File:
    """Names and values of a TOML or JSON file."""
    text = read_text(path)
    if path.suffix == ".json":
        content = parse_json(path, text.encode())
    else:
        try:
            content = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{path} is not valid TOML: {error}.") from error
    if isinstance(content.get("config"), dict):  # a run.json is a config file too, with every default in it
        read = File(_drop_defaults(path, content["config"]), ())
    else:
        tables = {name: value for name, value in content.items() if isinstance(value, dict)}
        settings = {name: value for name, value in content.items() if name not in tables}
        for table in tables.values():
            settings |= table
        read = File({name: value for name, value in settings.items() if value is not None}, tuple(tables))
    for name, value in _select(read.settings, *NAMES).items():
        if not isinstance(value, str):
            raise BadInput(f"in {path}: {name} must be text, got {shown(value)}.")
    return read


def check_file(content: Mapping[str, Any], tables: Iterable[str], groups: Iterable[type], path: Path) -> dict[str, Any]:
    """The settings of a file, each in its declared type and range."""
    from iqrl.make_run import check_names, check_settings

    settings = {name: value for name, value in content.items() if name not in NAMES}
    for name in tables:
        if name in (*NAMES, *settings_of(groups)):
            raise BadInput(f"in {path}: {name} is a setting, and must have a value instead of a table.")
    try:
        check_names(settings, groups)
        return check_settings(settings, groups)
    except BadInput as error:
        raise BadInput(f"in {path}: {error}") from None


def _select(content: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: content[name] for name in names if name in content}


def _drop_defaults(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run that differ from the defaults of its method."""
    from iqrl.make_run import groups_for
    from iqrl.methods.registry import find_method

    names = [config.get("task"), config.get("method")]
    texts = [name for name in names if isinstance(name, str)]
    if len(texts) < len(names):
        raise BadInput(f"in {path}: task and method must be names, got {shown(names)}.")
    trust(name for name in texts if ":" in name)
    method = find_method(config["method"])
    defaults = {
        name: field.default for name, field in settings_of(groups_for(config["task"], config["method"])).items()
    }
    defaults |= {**method.defaults, **method.fixed}
    as_json = lambda value: list(value) if isinstance(value, tuple) else value
    different = {name: value for name, value in config.items() if value != as_json(defaults.get(name, REQUIRED))}
    return {name: value for name, value in different.items() if value is not None}
