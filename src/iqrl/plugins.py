"""Objects of the user's own, named `module:attribute`."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from iqrl.errors import BadInput

PACKAGE = str(Path(__file__).parent)


def name_of(given: Any) -> str:
    """A name as it is; of a class or function of the user's own, `module:attribute`."""
    if isinstance(given, str):
        return given
    module, attribute = getattr(given, "__module__", None), getattr(given, "__qualname__", None)
    if not module or not attribute:
        raise BadInput(
            f"task and method are names, such as module:attribute, or classes and functions of your own, not "
            f"{type(given).__name__} objects."
        )
    if not attribute.isidentifier():
        raise BadInput(f"{attribute} is inside another; only what is at the top of a module can be found again.")
    return f"{module}:{attribute}"


def load_attribute(name: str) -> Any:
    """The attribute of a module found from the current directory or the installed packages."""
    module, attribute = load_module(name), name.partition(":")[2]
    if not hasattr(module, attribute):
        raise BadInput(f"module {module.__name__!r} has no {attribute!r}.")
    return getattr(module, attribute)


def load_module(name: str) -> ModuleType:
    """The module of `module:attribute`."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise BadInput(f"{name!r} is not a name of the form module:attribute.")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise BadInput(
            f"cannot import {module_name!r} for {name!r}: {error}; run from the folder that holds it."
        ) from error
    except Exception as error:
        raise BadInput(f"importing {module_name!r} failed with {in_a_sentence(error)}.") from error


def in_a_sentence(error: Exception) -> str:
    """What went wrong in the user's code, and where."""
    lines = str(error).strip().splitlines()
    frames = traceback.extract_tb(error.__traceback__)
    others = ("site-packages", "<frozen", PACKAGE)
    own = [frame for frame in frames if not any(part in frame.filename for part in others)]
    where = f" at {Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""
    return f"{type(error).__name__}{where}: {lines[0].rstrip('.') if lines else ''}"


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
        spec = importlib.util.find_spec(module_name)
        path = spec.origin if spec else None
    return Path(path) if path else None
