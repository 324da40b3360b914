"""Objects of the user's own, named `module:attribute`."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from typing import Any

from iqrl.errors import BadInput


def load_attribute(name: str) -> Any:
    """The attribute of a module found from the current directory or the installed packages."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise BadInput(f"{name!r} is not a name of the form module:attribute.")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise BadInput(
            f"cannot import {module_name!r} for {name!r}: {error}; run from the folder that holds it."
        ) from error
    except Exception as error:
        raise BadInput(f"importing {module_name!r} failed with {in_a_sentence(error)}.") from error
    if not hasattr(module, attribute):
        raise BadInput(f"module {module_name!r} has no {attribute!r}.")
    return getattr(module, attribute)


def in_a_sentence(error: Exception) -> str:
    """What went wrong in the user's code, and where."""
    lines = str(error).strip().splitlines()
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename and "<frozen" not in frame.filename]
    where = f" at {Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""
    return f"{type(error).__name__}{where}: {lines[0].rstrip('.') if lines else ''}"


def source_of(name: str) -> str:
    """A digest of the file behind `module:attribute`: an edited task is not the one that was trained before."""
    if ":" not in name:
        return ""
    spec = importlib.util.find_spec(name.partition(":")[0])
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        return ""
    return hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()
