"""The messages of `jit`: compile a kernel, launch it, inspect it."""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any, ClassVar, NamedTuple, SupportsIndex, TypeAlias

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import Operation
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.shape import ints
from accel_lab.libraries.jit.limits import MOST_IN_A_CLUSTER, PLAIN, LaunchOptions, Limits
from accel_lab.libraries.jit.program import as_compiled, base_of, require_names, require_source
from accel_lab.libraries.jit.tensor_map import Tiling, require_tiles

Extents: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...]
Triple: TypeAlias = tuple[int, int, int]

NO_MAPS: tuple[Tiling, ...] = ()
NULL = b""
"""What travels for None, a pointer to nothing; a number would be taken for one."""

LANGUAGES = ("cuda", "wgsl")
"""CUDA C++, which `host` and `cuda` compile, and WebGPU's, which `wgpu` does."""
MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_EXTENT = 2**31 - 1
MAX_GRID = (MAX_EXTENT, 65535, 65535)
MAX_NDIM = 3
_INTS = frozenset((int,))


class KernelFacts(NamedTuple):
    """What is known of a compiled kernel.

    Attributes:
        name: the kernel's name, template arguments included.
        parameters: the C++ types of its parameters.
        log: the compiler's warnings.
        cached: whether it was found on disk rather than compiled.
        binary: the path of what was compiled, a shared library on `host`; empty if there is none.
        source: the path of the source as it was compiled, for a debugger; empty if there is none.
        numbers: what the driver tells of it, as registers; sizes in bytes.
    """

    name: str
    parameters: tuple[str, ...]
    log: str
    cached: bool
    binary: str
    source: str
    numbers: dict[str, int]


class CompiledKernel:
    """A kernel of a context, compiled and loaded."""


class LoadedModule:
    """Kernels and variables of a context that were loaded together; `module` makes it."""


class Compile(Operation[Handle[CompiledKernel]], frozen=True, array_like=True, eq=False, tag=260):
    """Compile the kernel `name` of `source`, CUDA C++ or WGSL; the answer is a handle to launch it.

    `name` has the template arguments: "scale<float, 4>". `headers` maps names to texts, for
    `#include`. It does not hold up other messages.
    """

    library: ClassVar[str] = "jit"
    dtypes: ClassVar = frozenset({""})
    source: str
    name: str
    options: tuple[str, ...] = ()
    headers: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it
    language: str = "cuda"

    def infer(self) -> None:
        """Refuse what no compiler takes."""
        if self.language not in LANGUAGES:
            raise InvalidArgument(
                f"Compile: language is {self.language!r}; it may be 'cuda' or 'wgsl'"
            )
        if self.language == "wgsl" and (self.options or self.headers):
            raise InvalidArgument("Compile: WGSL has no options and no headers")
        require_source("Compile", self.source, self.headers, self.options)
        require_names("Compile", (self.name,), (self.source, *self.headers.values()))

    @property
    def names(self) -> tuple[str, ...]:
        """The one kernel."""
        return (self.name,)

    @property
    def text(self) -> str:
        """The source as compilers take it."""
        return as_compiled(self.source)

    @property
    def included(self) -> dict[str, str]:
        """The headers, likewise."""
        return {name: as_compiled(text) for name, text in self.headers.items()}

    @property
    def base(self) -> str:
        """The kernel's name without namespaces and template arguments."""
        return base_of(self.name)

    @property
    def file(self) -> str:
        """What the source is called in the compiler's messages."""
        return f"{self.base}.cu" if self.language == "cuda" else f"{self.base}.{self.language}"


class LaunchKernel(Operation[None], frozen=True, array_like=True, eq=False, tag=261):
    """Run a compiled kernel in `grid` blocks of `block` threads, each (x, y, z).

    `values` are the arguments in order, with None where the next of `refs` stands. Buffers for
    `const T*` are read, those for `T*` written. `shared_bytes` is for `extern __shared__`. With
    `cooperative` all blocks are there at once and may wait for each other. The last of `refs` are
    the buffers of the source's `constants`, then of its `variables`, which are written. `cluster`
    has the blocks of a cluster, (x, y, z). With `programmatic` it may begin before the kernel ahead
    has ended, for which it waits itself. `maps` say which buffers are given as tiles.
    """

    library: ClassVar[str] = "jit"
    dtypes: ClassVar = frozenset({""})
    runs_user_code: ClassVar[bool] = True
    written: ClassVar[str] = "refs"
    subject: ClassVar[str] = "kernel"
    kernel: Handle[CompiledKernel]
    grid: Triple
    block: Triple
    refs: tuple[AccelRef, ...] = ()
    values: tuple[Any, ...] = ()
    shared_bytes: int = 0
    cooperative: bool = False
    constants: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    cluster: Triple | None = None
    programmatic: bool = False
    maps: tuple[Tiling, ...] = NO_MAPS

    @property
    def options(self) -> LaunchOptions:
        """How the blocks run."""
        if not self.cooperative and self.cluster is None and not self.programmatic:
            return PLAIN
        return LaunchOptions(self.cooperative, self.cluster, self.programmatic)

    @property
    def arguments(self) -> tuple[AccelRef, ...]:
        """The buffers that are arguments."""
        named = len(self.constants) + len(self.variables)
        return self.refs[: len(self.refs) - named] if named else self.refs

    def infer(self) -> None:
        """Refuse what no device can launch; there is no result."""
        if triples(self.grid, self.block) != (self.grid, self.block):
            raise InvalidArgument("LaunchKernel: grid and block are (x, y, z)")
        named = len(self.constants) + len(self.variables)
        if self.values.count(None) + named != len(self.refs):
            raise InvalidArgument(
                f"LaunchKernel: values has {self.values.count(None)} places for "
                f"{len(self.refs) - named} refs"
            )
        self._require_types()
        options = self.options
        if options is not PLAIN:
            require_options(self.grid, options)
        if self.maps is not NO_MAPS:
            self._require_maps()
        limits = self.kernel.said
        if isinstance(limits, Limits):  # it is compiled
            limits.check(self.block, self.shared_bytes)
            if options is not PLAIN:
                limits.check_options(self.grid, self.block, options)
            if self.maps:
                limits.check_maps()

    def _require_types(self) -> None:
        """Refuse options of other types."""
        if type(self.shared_bytes) is not int or self.shared_bytes < 0:
            raise InvalidArgument(
                f"LaunchKernel: shared_bytes is a number from 0, not {self.shared_bytes!r}"
            )
        for name in ("cooperative", "programmatic"):
            if type(given := getattr(self, name)) is not bool:
                raise InvalidArgument(f"LaunchKernel: {name} is True or False, not {given!r}")

    def _require_maps(self) -> None:
        """Refuse tiles that are of no buffer, or that no card fetches."""
        if type(self.maps) is not tuple or not all(type(one) is Tiling for one in self.maps):
            raise InvalidArgument(f"LaunchKernel: maps are tilings in a tuple, not {self.maps!r}")
        buffers = dict(zip(self._places(), self.arguments, strict=True))
        for tiling in self.maps:
            ref = buffers.get(tiling.argument)
            if ref is None:
                raise InvalidArgument(f"LaunchKernel: argument {tiling.argument} is no buffer")
            require_tiles(ref, tiling)

    def _places(self) -> list[int]:
        """Return which arguments are the buffers."""
        return [at for at, value in enumerate(self.values) if value is None]

    def changes(self) -> tuple[AccelRef, ...]:
        """Return the buffers but those for `const T*`, where the kernel is here to tell."""
        kernel = getattr(self.kernel, "array", None)
        if kernel is None:
            return (*self.arguments, *self._of(self.variables))
        read_only = [one.read_only for one in kernel.arguments.parameters]
        read = self._read(read_only)
        places = zip_longest(self.arguments, read)
        written = tuple(ref for ref, is_read in places if ref is not None and not is_read)
        return (*written, *self._of(self.variables))

    def _read(self, read_only: Sequence[bool]) -> list[bool]:
        """Return of each buffer whether the kernel only reads it, as far as that is known."""
        tiled = {one.argument: one.read_only for one in self.maps}
        return [
            tiled.get(at, is_read)
            for at, (is_read, value) in enumerate(zip(read_only, self.values, strict=False))
            if value is None
        ]

    def only_reads(self) -> tuple[AccelRef, ...]:
        """Return the buffers for `const T*`; waits until the kernel is compiled, which tells.

        Raises:
            CompileError: it does not compile.
        """
        limits = self.kernel.result().said
        read_only = limits.read_only if isinstance(limits, Limits) else ()
        places = self._read(read_only)
        read = [ref for ref, one in zip(self.arguments, places, strict=False) if one]
        return (*read, *self._of(self.constants))

    def _of(self, names: tuple[str, ...]) -> tuple[AccelRef, ...]:
        """Return the buffers of the constants, or of the variables."""
        end = len(self.refs) - (len(self.variables) if names is self.constants else 0)
        return self.refs[end - len(names) : end] if names else ()

    @property
    def dtype_key(self) -> str:
        """Nothing: a kernel takes buffers of any dtype."""
        return ""


class KernelOf(Operation[Handle[CompiledKernel]], frozen=True, array_like=True, eq=False, tag=591):
    """Take a kernel out of a module; the answer is a handle to launch it by.

    `parameters` are its C++ types, "float*, const float*, int", where the module tells none.
    """

    library: ClassVar[str] = "jit"
    dtypes: ClassVar = frozenset({""})
    module: Handle[LoadedModule]
    name: str
    parameters: str = ""


class InspectKernel(Operation[KernelFacts], frozen=True, array_like=True, eq=False, tag=262):
    """Tell what became of a kernel: its parameters, its files, the compiler's warnings."""

    library: ClassVar[str] = "jit"
    dtypes: ClassVar = frozenset({""})
    kernel: Handle[CompiledKernel]


def require_options(grid: Triple, options: LaunchOptions) -> None:
    """Refuse options that no device has together, or for such a grid.

    Raises:
        InvalidArgument: with what is wrong.
    """
    cluster = options.cluster
    if options.cooperative and (cluster is not None or options.programmatic):
        raise InvalidArgument("cooperative=True goes with no cluster and no programmatic=True")
    if cluster is None:
        return
    if type(cluster) is not tuple or _triple("cluster", cluster) != cluster:
        raise InvalidArgument(f"LaunchKernel: cluster is (x, y, z), not {cluster!r}")
    if math.prod(cluster) > MOST_IN_A_CLUSTER:
        raise InvalidArgument(
            f"cluster {cluster} has {math.prod(cluster)} blocks; it has at most {MOST_IN_A_CLUSTER}"
        )
    if any(blocks % each for blocks, each in zip(grid, cluster, strict=True)):
        raise InvalidArgument(f"grid {grid} is no multiple of cluster {cluster}")


def cluster_of(given: Extents | None) -> Triple | None:
    """Return the extents of a cluster as (x, y, z).

    Raises:
        InvalidArgument: they are not up to three positive integers.
    """
    return None if given is None else _triple("cluster", ints("cluster", _tuple(given)))


def triples(grid: Extents, block: Extents) -> tuple[Triple, Triple]:
    """Return grid and block as (x, y, z), each given by up to three positive integers.

    Raises:
        InvalidArgument: they are not, or no device has blocks so large.
    """
    try:
        blocks, threads = _tuple(grid), _tuple(block)
        if not _INTS.issuperset(map(type, (*blocks, *threads))):  # a handle may hold another soon
            blocks, threads = ints("grid", blocks), ints("block", threads)
        return _triples(len(blocks), *blocks, *threads)
    except TypeError:  # what has no hash is no integer
        ints("grid", grid)
        ints("block", block)
        raise


@lru_cache(maxsize=4096, typed=True)  # 7 is an extent, and 7.0 is none
def _triples(axes: int, *extents: SupportsIndex) -> tuple[Triple, Triple]:
    """Return grid and block, of which the grid has the first extents."""
    blocks, threads = _triple("grid", extents[:axes]), _triple("block", extents[axes:])
    if math.prod(threads) > MAX_THREADS:
        raise InvalidArgument(
            f"block {threads} has {math.prod(threads)} threads; a block has at most {MAX_THREADS}"
        )
    for name, given, limits in (("grid", blocks, MAX_GRID), ("block", threads, MAX_BLOCK)):
        if any(n > limit for n, limit in zip(given, limits, strict=True)):
            raise InvalidArgument(f"{name} {given} is larger than {limits}")
    return blocks, threads


def _tuple(extents: Any) -> tuple[Any, ...]:
    if isinstance(extents, int | tuple):
        return extents if isinstance(extents, tuple) else (extents,)
    several = isinstance(extents, Iterable) and getattr(extents, "shape", None) != ()
    return tuple(extents) if several else (extents,)


def _triple(name: str, value: tuple[SupportsIndex, ...]) -> Triple:
    extents = ints(name, value)
    if not 1 <= len(extents) <= MAX_NDIM or any(not 1 <= n <= MAX_EXTENT for n in extents):
        raise InvalidArgument(f"{name} is one to three positive integers, not {value!r}")
    x, y, z = (*extents, 1, 1)[:MAX_NDIM]
    return x, y, z
