"""IPython's `display` in a context: it shows under the cell, where IPython itself would print."""

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

from accel_lab.compute.appearance import Bundle, bundle

MODULE = "IPython.core.display_functions"
sink: list[Callable[[Bundle], None]] = []
"""Takes what is displayed."""


def display(*values: Any, raw: bool = False, **_: object) -> None:
    """Show values as a notebook would.

    Parameters:
        raw: they are data by MIME type.
    """
    for value in values:
        shown = (value, {}) if raw else bundle(value)
        if shown[0]:  # else the value has shown itself
            for take in sink:
                take(shown)


def use() -> None:
    """Have everybody who imports IPython's `display` get this one."""
    if MODULE in sys.modules:
        sys.modules[MODULE].display = display  # type: ignore[attr-defined]
    elif not any(isinstance(one, _Finder) for one in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        module.display = display  # type: ignore[attr-defined]


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname == MODULE else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec
