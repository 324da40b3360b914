"""Objects of the user's own, named `module:attribute`."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from iqrl.errors import BadInput


def load_attribute(name: str) -> Any:
    """The attribute of a module found from the current directory or the installed packages."""
    module_name, _, attribute = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise BadInput(f"cannot import {module_name!r} for {name!r}: {error}.") from error
    if not hasattr(module, attribute):
        raise BadInput(f"module {module_name!r} has no {attribute!r}.")
    return getattr(module, attribute)
