"""The command that makes a shell complete commands, flags, methods and tasks: completion.

The script is written once and knows all of them: a shell that asked iqrl at every key would wait for Python.
"""

from __future__ import annotations

import argparse
import shlex
from typing import Any, NamedTuple

SHELLS = {
    "bash": 'eval "$(iqrl completion bash)" in ~/.bashrc, or what it prints in a file there',
    "zsh": "iqrl completion zsh > ~/.zfunc/_iqrl, with ~/.zfunc in $fpath before compinit",
    "fish": "iqrl completion fish > ~/.config/fish/completions/iqrl.fish",
}
"""and how each is told"""
PRESETS = ("paper", "original")


def add_completion(commands: Any) -> None:
    parser = commands.add_parser(
        "completion",
        help="print a script that completes commands, flags and names in bash, zsh or fish",
        epilog=" ".join(f"{shell}: {how}." for shell, how in SHELLS.items()),
    )
    parser.set_defaults(command=completion)
    parser.add_argument("shell", choices=SHELLS, help="the shell")


class Words(NamedTuple):
    """What can be completed."""

    commands: dict[str, str]
    """and the help of each; those of a command that has some of its own are named "study run" """
    flags: dict[str, list[str]]
    """of each command"""
    values: dict[str, list[str]]
    """of flags that take one of several names"""
    names: dict[str, list[str]]
    """what may follow a command without a flag"""


def completion(options: argparse.Namespace) -> None:
    from iqrl.cli.main import build_parser
    from iqrl.cli.settings import Flags
    from iqrl.envs.registry import TASKS
    from iqrl.make_run import groups_for
    from iqrl.methods.registry import METHODS

    words = read_parser(build_parser(Flags(groups_for())))
    words.values.update({"--method": list(METHODS), "--preset": list(PRESETS)})
    words.names.update({"train": list(TASKS), "tune": list(TASKS)})
    print(WRITERS[options.shell](words), end="")


def read_parser(parser: argparse.ArgumentParser) -> Words:
    words = Words({}, {}, {}, {})
    _read(parser, "", words)
    return words


def _read(parser: argparse.ArgumentParser, path: str, words: Words) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {line.dest: line.help or "" for line in action._get_subactions()}
            for name, below in action.choices.items():
                inner = f"{path} {name}".strip()
                words.commands[inner] = helps.get(name, "")
                _read(below, inner, words)
        elif not action.option_strings and action.choices:
            words.names[path] = list(action.choices)
        elif action.option_strings and isinstance(action.metavar, str) and "|" in action.metavar:
            words.values[action.option_strings[-1]] = action.metavar.split("|")
    words.flags[path] = [flag for action in parser._actions for flag in action.option_strings if flag.startswith("--")]


def _below(words: Words, path: str) -> list[str]:
    """The words that may stand after a command: commands of its own, names, flags."""
    start = f"{path} " if path else ""
    inner = [name.removeprefix(start) for name in words.commands if name.startswith(start)]
    return [*[name for name in inner if " " not in name], *words.names.get(path, []), *words.flags.get(path, [])]


def write_bash(words: Words) -> str:
    return f"""# iqrl completion bash
_iqrl() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} place= word words=
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "${{place:+$place }}$word" in
            {_alternatives(words)}) place="${{place:+$place }}$word" ;;
        esac
    done
    case "$prev" in
{_cases(words.values)}
        *) case "$place" in
{_cases({path: _below(words, path) for path in ("", *words.commands)})}
        esac ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _iqrl iqrl
"""


def write_zsh(words: Words) -> str:
    return f"""#compdef iqrl
_iqrl() {{
    local prev=${{words[CURRENT-1]}} place= word known=
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        case "${{place:+$place }}$word" in
            {_alternatives(words)}) place="${{place:+$place }}$word" ;;
        esac
    done
    case "$prev" in
{_cases(words.values, "known")}
        *) case "$place" in
{_cases({path: _below(words, path) for path in ("", *words.commands)}, "known")}
        esac ;;
    esac
    compadd -- ${{=known}} || _files
}}
if [ "$funcstack[1]" = "_iqrl" ]; then _iqrl "$@"; else compdef _iqrl iqrl; fi
"""


def _alternatives(words: Words) -> str:
    return "|".join(f'"{name}"' for name in words.commands)


def _cases(values: dict[str, list[str]], variable: str = "words") -> str:
    return "\n".join(
        f'        {shlex.quote(name)}) {variable}="{" ".join(found)}" ;;' for name, found in values.items()
    )


def write_fish(words: Words) -> str:
    lines = ["# iqrl completion fish", "complete -c iqrl -n __fish_use_subcommand -f"]
    for path, text in words.commands.items():
        *outer, name = path.split(" ")
        seen = f"__fish_seen_subcommand_from {outer[0]}" if outer else "__fish_use_subcommand"
        lines.append(f"complete -c iqrl -n '{seen}' -a {name} -d {shlex.quote(text)}")
    for path, flags in words.flags.items():
        seen = f"__fish_seen_subcommand_from {path.split(' ')[-1]}" if path else "__fish_use_subcommand"
        for flag in flags:
            given = f" -x -a {shlex.quote(' '.join(words.values[flag]))}" if flag in words.values else ""
            lines.append(f"complete -c iqrl -n '{seen}' -l {flag.removeprefix('--')}{given}")
    for path, names in words.names.items():
        lines.append(f"complete -c iqrl -n '__fish_seen_subcommand_from {path}' -a {shlex.quote(' '.join(names))}")
    return "\n".join(lines) + "\n"


WRITERS = {"bash": write_bash, "zsh": write_zsh, "fish": write_fish}
