"""The user's own modules inside a context, reloaded when their source has changed."""

import gc
import hashlib
import sys
import sysconfig
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import cache_from_source
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

FRESH_S = 2.0
"""A file that is younger may change again without a sign: file times may be as coarse."""
_PACKAGE = Path(__file__).resolve().parents[2]
_INSTALLED = tuple(
    str(Path(path).resolve())
    for name, path in sysconfig.get_paths().items()
    if name in ("stdlib", "platstdlib", "purelib", "platlib")
)


class _Source(NamedTuple):
    file: str
    stat: tuple[int, int, int]
    digest: bytes


class Projects:
    """What was read of each module that is neither installed nor part of Python."""

    def __init__(self) -> None:
        self._known: dict[str, _Source] = {}
        self._passed: set[str] = set()
        self._newest: tuple[int, str] = 0, ""

    def seen(self) -> None:
        """Take note of what has been imported since."""
        newest = len(sys.modules), next(reversed(sys.modules))
        if newest == self._newest:
            return
        self._newest = newest
        for name, module in list(sys.modules.items()):
            if name in self._passed or name in self._known:
                continue
            file = self._file(name, module)
            source = None if file is None else _read(file)
            if source is not None:
                young = time.time() - source.stat[0] / 1e9 < FRESH_S
                self._known[name] = source._replace(digest=b"") if young else source

    def refresh(self) -> Callable[[Any], Any] | None:
        """Load again what has changed, and what comes after it; return what renews a value.

        None when nothing has changed. A module that is broken now raises when it is loaded.

        Raises:
            Exception: what a module raises.
        """
        self.seen()
        changed: list[str] = []
        for name, known in list(self._known.items()):
            if getattr(sys.modules.get(name), "__file__", None) != known.file:
                del self._known[name]
                self._newest = 0, ""
                continue
            try:
                if _stat(known.file) == known.stat and known.digest:
                    continue
            except FileNotFoundError:
                continue
            source = _read(known.file)
            if source is not None:
                if source.digest != known.digest:
                    changed.append(name)
                else:
                    self._known[name] = source
        if not changed:
            return None
        # Modules are known in the order of their imports: what came later may use what has changed.
        names = list(self._known)
        first = min(names.index(name) for name in changed)
        loaded = names[first:]
        for name in loaded:
            self._load(name)
        return lambda value: _renewed(value, frozenset(loaded))

    def _load(self, name: str) -> None:
        """Run a module's source again in the module that there is."""
        module = sys.modules[name]
        file = self._known[name].file
        text = Path(file).read_bytes()
        self._known[name] = _Source(file, _stat(file), hashlib.sha256(text).digest())
        before = dict(module.__dict__)
        try:
            exec(compile(text, file, "exec"), module.__dict__)  # noqa: S102 - as import does
        except BaseException:
            self._known[name] = self._known[name]._replace(digest=b"")  # to be tried again
            raise
        _move(before, module)

    def _file(self, name: str, module: ModuleType | None) -> str | None:
        """Return the source of a module of the user's; None for every other."""
        if module is None:
            return None
        file: str | None = getattr(module, "__file__", None)
        if name == "__main__" or not file or not file.endswith(".py") or is_installed(file):
            self._passed.add(name)
            return None
        return file


def distrust_bytecode() -> None:
    """Have imports of this process read the user's source where its bytecode may be older.

    Bytecode names the size of its source and its time in whole seconds (PEP 552), so of a module
    that was edited within a second of its last import it may be what was there before.
    """
    stats_of = SourceFileLoader.path_stats

    def path_stats(loader: SourceFileLoader, path: str) -> Any:
        stats = stats_of(loader, path)
        if _may_be_older(cache_from_source(path), stats["mtime"]) and not is_installed(path):
            text = f"the bytecode of {path} may be older than its source"
            raise OSError(text)  # it is not read then, and not written
        return stats

    SourceFileLoader.path_stats = path_stats  # type: ignore[assignment,method-assign]


def _may_be_older(bytecode: str, written_at: float) -> bool:
    """Whether bytecode, or what would be made now, is not clearly younger than its source."""
    try:
        made_at = Path(bytecode).stat().st_mtime
    except OSError:
        made_at = time.time()
    return made_at <= written_at + FRESH_S


def is_installed(file: str) -> bool:
    """Whether Python or pip has put a file there, or it is one of ours."""
    return _are_installed(file.rpartition("/")[0])


@cache
def _are_installed(folder: str) -> bool:
    path = Path(folder).resolve()
    if str(path).startswith(_INSTALLED) or _PACKAGE in (path, *path.parents):
        return True
    above = (folder, *map(str, Path(folder).parents))
    return any(_is_pips(one) for one in above if one in sys.path)


@cache
def _is_pips(folder: str) -> bool:
    """Whether pip installs into this folder of `sys.path`."""
    return any(Path(folder).glob("*.dist-info"))


def _stat(file: str) -> tuple[int, int, int]:
    found = Path(file).stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(file: str) -> _Source | None:
    try:
        return _Source(file, _stat(file), hashlib.sha256(Path(file).read_bytes()).digest())
    except OSError:
        return None


def _move(before: dict[str, Any], module: ModuleType) -> None:
    """Make what is of a module's classes as they were of those that it has now."""
    old = [one for one in before.values() if isinstance(one, type)]
    renewed = {id(one): _renewed(one, frozenset((module.__name__,))) for one in old}
    old = [one for one in old if renewed[id(one)] is not one]
    for thing in gc.get_referrers(*old) if old else ():
        now = renewed.get(id(type(thing)))
        if now is not None:
            with suppress(TypeError):  # it is laid out in another way
                thing.__class__ = now


def _renewed(value: Any, loaded: frozenset[str]) -> Any:
    """Return what a function or class of a module that was loaded again has become."""
    if not isinstance(value, FunctionType | type) or value.__module__ not in loaded:
        return value
    found: Any = sys.modules[value.__module__]
    for part in value.__qualname__.split("."):
        found = getattr(found, part, None)
    return value if found is None else found
