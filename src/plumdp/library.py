"""What the command line uses of the library, by name: loaded when it is used, so that help needs none of it.

The names are listed in ``library.pyi``, where type checkers find them too.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_MODULES = {alias.name: node.module for node in _STUB.body if isinstance(node, ast.ImportFrom) for alias in node.names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"{__name__} does not list {name}")
    return getattr(import_module(f"plumdp.{_MODULES[name]}"), name)
