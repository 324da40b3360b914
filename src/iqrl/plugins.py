"""Objects of the user's own, named `module:attribute`, and which of them may be loaded.

A name that the user gives is loaded. A name that stands in a directory is loaded if this installation made the
directory, which its mark says, or if the user trusts the module: `--trust MODULE`, `IQRL_TRUST=MODULE`. Nothing else
is imported, whoever wrote it.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import importlib
import importlib.util
import os
import re
import secrets
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from iqrl.errors import BadInput, shorten
from iqrl.files import read_bytes
from iqrl.locks import BINARY, NO_LINKS

PACKAGE = str(Path(__file__).parent)
STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep
VARIABLE = "IQRL_TRUST"
"""modules that are trusted, with commas between them"""


HELD = "object"
"""stands for the module in the names of objects that only this process has"""
_held: dict[str, Any] = {}


def name_of(given: Any) -> str:
    """A name as it is, `file.py:attribute` as that of a module; of a class or function, `module:attribute`.

    A function inside another, a lambda and a partial cannot be found by a name; they are kept, as long as this process
    lasts, under a name of the form `object:what_1`.
    """
    if isinstance(given, str):
        return module_form(given)
    module, attribute = getattr(given, "__module__", None), getattr(given, "__qualname__", None)
    if module and attribute and attribute.isidentifier() and not isinstance(given, Held):
        return f"{module}:{attribute}"
    if not callable(given):
        raise BadInput(
            f"task and method are names, such as module:attribute, or classes and functions of your own, not "
            f"{type(given).__name__} objects."
        )
    return hold(given)


def hold(given: Any) -> str:
    """Keep an object as long as this process lasts; the name that stands for it."""
    attribute = getattr(given, "__qualname__", None)
    for name, object in _held.items():
        if object is given:
            return name
    words = re.sub(r"\W+", "_", getattr(given, "label", None) or attribute or type(given).__name__).strip("_")
    name = f"{HELD}:{words or 'lambda'}_{len(_held) + 1}"
    _held[name] = given
    return name


def name_of_network(given: Any) -> str:
    """The same for a network, which may also be an object that is not callable."""
    return name_of(given) if callable(given) or isinstance(given, str) else hold(given)


def module_form(name: str) -> str:
    """
    >>> module_form("nets/my.py:Net"), module_form("my:Net")
    ('nets.my:Net', 'my:Net')
    """
    file, _, attribute = name.rpartition(":")
    if not file.endswith(".py"):
        return name
    here = os.path.relpath(file).removesuffix(".py")
    parts = Path(here).parts
    if not all(part.isidentifier() for part in parts):
        raise BadInput(
            f"{file} cannot be imported from here; run from a folder that holds it, and name it as a module."
        )
    return f"{'.'.join(parts)}:{attribute}"


class Held:
    """A function that makes what was given as an object; `label` is what its name begins with."""

    def __init__(self, make: Callable[[], Any], label: str):
        self.make, self.label = make, label

    def __call__(self) -> Any:
        return self.make()


# Trust


class Untrusted(BadInput):
    """A name stands in a directory, and nobody said that its module may be imported."""

    def __init__(self, name: str):
        self.module = name.partition(":")[0]
        allow = f"say --trust {self.module}; in Python, set {VARIABLE}={self.module}."
        if not _is_here(name):
            text = _missing(name)
        elif self.module in _edited:
            text = f"{_edited[self.module]} has changed since this was made; to use it as it is now, {allow}"
        else:
            text = f"{name} is code of whoever made this, and was not imported; if you know the module, {allow}"
        super().__init__(text)


_trusted: set[str] = set()
"""modules, in this process"""
_edited: dict[str, str] = {}
"""modules of what was opened last that this installation made of other source files, and what these files are"""


def trust(modules: Iterable[str]) -> None:
    """From now on these may be imported: modules, or names of the form module:attribute."""
    _trusted.update(module_form(each).partition(":")[0] for each in modules)


def is_trusted(name: str) -> bool:
    module, _, attribute = name.partition(":")
    if module == "gymnasium" and attribute and not attribute.isidentifier():
        return True  # an environment of its registry, which is part of what iqrl stands on
    given = os.environ.get(VARIABLE, "").split(",")
    return any(module == each or module.startswith(f"{each}.") for each in (*_trusted, *given) if each)


def is_plugin(name: str) -> bool:
    """Whether the name is that of code which iqrl does not bring along."""
    module, colon, attribute = name.partition(":")
    return bool(colon) and not (module == "gymnasium" and not attribute.isidentifier())


def mark_of(*names: str) -> str:
    """What says that this installation made a directory whose run has these names; empty where none is a plug-in.

    Two digests: of the names with their source files, and of the names alone. By the second, a directory of one's own
    is known after a file was edited. Marks of earlier versions have only the first."""
    if not any(map(is_plugin, names)) or not _key():
        return ""
    alone = sorted(set(names))
    sources = [f"{name} {source_of(name)}" for name in alone]
    return "".join(hmac.new(_key(), "\n".join(text).encode(), hashlib.sha256).hexdigest() for text in (sources, alone))


DIGEST = 64
"""characters of each half of a mark"""


def trust_marked(mark: Any, *names: str) -> None:
    """Trust the names of a directory that this installation made of the same source files."""
    plugins = [name.partition(":")[0] for name in names if is_plugin(name)]
    for module in plugins:
        _edited.pop(module, None)
    if _same_half(mark, names, slice(DIGEST)):
        trust(names)
    elif is_edited(mark, *names):
        files = " or ".join(dict.fromkeys(f"{module.replace('.', '/')}.py" for module in plugins))
        _edited.update(dict.fromkeys(plugins, files))


def is_edited(mark: Any, *names: str) -> bool:
    """Whether this installation made a directory of these names when one of their source files was another."""
    return _same_half(mark, names, slice(DIGEST, None)) and not _same_half(mark, names, slice(DIGEST))


def _same_half(mark: Any, names: Iterable[str], half: slice) -> bool:
    given = mark[half] if isinstance(mark, str) else ""
    return bool(given) and hmac.compare_digest(given.encode(), mark_of(*names)[half].encode())


def warn_of_edits(mark: Any, *names: str) -> None:
    """Say that what goes on does so with other code; where that is not trusted, it does not go on."""
    if is_edited(mark, *names) and all(map(is_trusted, filter(is_plugin, names))):
        trust_marked(mark, *names)
        files = next(_edited[name.partition(":")[0]] for name in names if is_plugin(name))
        warnings.warn(f"{files} has changed since this was made; training goes on with it as it is now.", stacklevel=3)


def _key() -> bytes:
    """A secret of this installation, kept outside all runs; empty where none can be kept."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    path = state / "iqrl" / "key"
    with contextlib.suppress(OSError, BadInput, RuntimeError):
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with contextlib.suppress(FileExistsError):
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINKS | BINARY, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(secrets.token_bytes(32))
        return read_bytes(path)
    return b""


# Loading


def load_attribute(name: str) -> Any:
    """The attribute of a module found from the current directory or the installed packages."""
    file = name.rpartition(":")[0]
    if file.endswith(".py") and not Path(file).is_file():
        raise BadInput(f"there is no file {shorten(file, 80)} in {shorten(os.getcwd(), 80)}.")
    name = module_form(name)
    if name.startswith(f"{HELD}:"):
        if name not in _held:
            raise BadInput(f"{name} was an object of the process that made it; give a class or function by its name.")
        return _held[name]
    module, attribute = load_module(name), name.partition(":")[2]
    if not hasattr(module, attribute):
        raise BadInput(f"module {module.__name__!r} has no {attribute!r}.")
    return getattr(module, attribute)


def load_module(name: str) -> ModuleType:
    """The module of `module:attribute`, if it is trusted."""
    module_name, _, attribute = name.partition(":")
    if not attribute or not all(part.isidentifier() for part in module_name.split(".")):
        raise BadInput(f"{name!r} is not a name of the form module:attribute or file.py:attribute.")
    if module_name.partition(".")[0] in sys.stdlib_module_names - {"__main__"}:
        raise BadInput(f"{module_name!r} is a module of Python itself, and has no tasks, methods or networks.")
    if not is_trusted(name):
        raise Untrusted(name)
    if not _is_here(name):
        raise BadInput(_missing(name))
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise BadInput(f"cannot import {module_name!r} for {name!r}: {error}; install it.") from error
    except (Exception, SystemExit) as error:
        raise BadInput(f"importing {module_name!r} failed with {in_a_sentence(error)}.") from error


def _is_here(name: str) -> bool:
    """Whether the module can be found; of a script, whether it is the one that runs."""
    module_name, _, attribute = name.partition(":")
    if module_name == "__main__":
        return hasattr(sys.modules["__main__"], attribute)
    return module_name in sys.modules or find_without_import(module_name) is not None


def _missing(name: str) -> str:
    """Where it was looked for, and what to do."""
    module_name, _, attribute = name.partition(":")
    if module_name == "__main__":
        return (
            f"{attribute} was defined in a script, which cannot be imported; in Python give it, iqrl.load(path, "
            f"env={attribute}), or move it into a module of its own before you train."
        )
    return (
        f"cannot import {module_name!r} for {name!r}: there is no such module in {shorten(os.getcwd(), 80)}, nor among "
        f"the installed packages; run from the folder that holds it, put that folder into PYTHONPATH, or install it."
    )


def in_a_sentence(error: BaseException) -> str:
    """What went wrong in the user's code, and where."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # the user's own, too
        lines = []
    frames = traceback.extract_tb(error.__traceback__)
    others = ("site-packages", "<frozen", PACKAGE, STANDARD_LIBRARY)
    own = [frame for frame in frames if not any(part in frame.filename for part in others)]
    where = f" at {Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""
    return f"{type(error).__name__}{where}: {lines[0].rstrip('.')[:300] if lines else ''}"


def source_of(name: str) -> str:
    """A digest of the file behind `module:attribute`: an edited task is not the one that was trained before."""
    if ":" not in name:
        return ""
    file = _file_of(name.partition(":")[0])
    return hashlib.sha256(file.read_bytes()).hexdigest() if file and file.is_file() else ""


def _file_of(module_name: str) -> Path | None:
    if module_name == "__main__":  # which has no spec; and in a notebook no file
        path = getattr(sys.modules["__main__"], "__file__", None)
    else:
        spec = find_without_import(module_name)
        path = spec.origin if spec else None
    return Path(path) if path else None


def find_without_import(module_name: str) -> ModuleSpec | None:
    """Where a module is. `importlib.util.find_spec` would import the packages that it is in."""
    top, *inner = module_name.split(".")
    if not all(part.isidentifier() for part in (top, *inner)):
        return None
    try:
        loaded = getattr(sys.modules.get(module_name), "__spec__", None)
        spec = loaded or PathFinder.find_spec(top, ["", *sys.path]) or importlib.util.find_spec(top)
        name = top
        for part in [] if loaded else inner:
            name = f"{name}.{part}"
            spec = PathFinder.find_spec(name, spec.submodule_search_locations) if spec else None
    except (ImportError, ValueError, AttributeError):
        return None
    return spec
