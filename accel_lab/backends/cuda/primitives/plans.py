"""Compiled algorithms: on disk between processes, loaded once in one, and called on a stream."""

import threading
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import version
from typing import Any, TypeAlias

import cupy
from cupy.cuda import nvrtc

from accel_lab.backends.cuda.primitives.compilation import compiled
from accel_lab.backends.cuda.primitives.memory import memory
from accel_lab.backends.cuda.primitives.recipes import Recipe
from accel_lab.compute.machine.disk_cache import DiskCache, cache_folder, key_of
from accel_lab.errors import BackendUnavailable

FORMAT = 1
_BLOB = "algorithm.bin"
_WITHOUT_SCRATCH = frozenset({"unary_transform", "binary_transform"})

_Size: TypeAlias = tuple[Recipe, int | None, int | None]
"""An algorithm with its extents."""
SIZES_KEPT = 4096


class _Stream:
    """A stream as cuda.compute takes one."""

    def __init__(self, ptr: int) -> None:
        self._ptr = ptr

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._ptr


class Plans:
    """The algorithms of one context.

    A loaded one has the arguments of its last call in it, so only one thread at a time calls one.
    """

    def __init__(self, architecture: str) -> None:
        self._architecture = architecture
        self._cache = DiskCache(cache_folder() / "primitives")
        self._blobs: dict[Recipe, bytes] = {}
        self._loaded: dict[Recipe, Any] = {}
        self._scratch: dict[_Size, int] = {}
        self._lock = threading.RLock()
        self.found = self.compiled = 0

    def __len__(self) -> int:
        return len(self._loaded)

    def lacking(self, recipes: Iterable[Recipe]) -> list[Recipe]:
        """Return those that are not built yet in this process."""
        return [one for one in recipes if one not in self._loaded and one not in self._blobs]

    def build(self, recipes: Iterable[Recipe]) -> None:
        """Compile, or find on disk; any thread, takes seconds.

        Raises:
            CompileError: an operator does not compile.
            BackendUnavailable: cuda.compute is not installed.
        """
        for recipe in recipes:
            self._blobs[recipe] = self._built(recipe)

    def run(self, recipe: Recipe, **arguments: Any) -> None:
        """Enqueue an algorithm on the current stream; its arguments are those of cuda.compute.

        Arrays may be dropped afterwards: their memory is used again in the order of the stream.
        """
        with self._lock:
            algorithm = self._loaded.get(recipe)
            if algorithm is None:
                algorithm = self._loaded[recipe] = self._load(recipe)
            given = {name: _given(value) for name, value in arguments.items()}
            stream = _Stream(cupy.cuda.get_current_stream().ptr)
            if recipe.algorithm in _WITHOUT_SCRATCH:
                algorithm(stream=stream, **given)
                return
            size = recipe, arguments.get("num_items"), arguments.get("num_segments")
            nbytes = self._scratch.get(size)
            if nbytes is None:
                nbytes = self._asked(
                    size, int(algorithm(temp_storage=None, stream=stream, **given))
                )
            algorithm(temp_storage=cupy.empty(nbytes, cupy.uint8), stream=stream, **given)

    def close(self) -> None:
        """Unload what is loaded."""
        with self._lock:
            self._loaded.clear()

    def _asked(self, size: _Size, nbytes: int) -> int:
        """Keep how much an algorithm wants, which follows from its extents alone."""
        if len(self._scratch) >= SIZES_KEPT:
            self._scratch.clear()
        # Of none CUB would be asked again how much it wants.
        self._scratch[size] = max(nbytes, 1)
        return self._scratch[size]

    def _load(self, recipe: Recipe) -> Any:
        from cuda import compute

        if recipe not in self._blobs:
            self.build([recipe])
        return compute.deserialize(self._blobs[recipe])

    def _built(self, recipe: Recipe) -> bytes:
        _require_compute()
        key = key_of(
            FORMAT, self._architecture, version("cuda-cccl"), nvrtc.getVersion(), tuple(recipe)
        )
        # What a source includes may change, and its name does not tell.
        keeps = not any("#include" in op.source for op in recipe.operators)
        found = self._cache.get(key) if keeps else None
        if found is not None and _BLOB in found:
            self.found += 1
            return found[_BLOB]
        blob = compiled(recipe, self._architecture)
        self.compiled += 1
        if keeps:
            with suppress(OSError):  # no room, or no right to write
                self._cache.put(key, {_BLOB: blob})
        return blob


def _given(value: Any) -> Any:
    return memory(value) if isinstance(value, cupy.ndarray) else value


def _require_compute() -> None:
    """Refuse where cuda.compute is not there.

    Raises:
        BackendUnavailable: it is not installed, or finds no CUDA.
    """
    try:
        from cuda import compute
    except ImportError as error:
        raise BackendUnavailable(f"primitives: cuda.compute is not there: {error}") from error
    if not compute._BINDINGS_AVAILABLE:  # noqa: SLF001 - it is in its __all__
        raise BackendUnavailable("primitives: cuda.compute finds no CUDA driver")
