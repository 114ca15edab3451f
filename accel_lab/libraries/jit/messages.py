"""The messages of `jit`: compile a kernel, launch it, inspect it."""

import math
from collections.abc import Iterable
from functools import lru_cache
from itertools import zip_longest
from typing import Any, ClassVar, NamedTuple, SupportsIndex, TypeAlias

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import Operation
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.shape import ints
from accel_lab.libraries.jit.limits import Limits
from accel_lab.libraries.jit.program import as_compiled, base_of, require_names, require_source

Extents: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...]
Triple: TypeAlias = tuple[int, int, int]

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
    the buffers of the source's `constants`, then of its `variables`, which are written.
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
        if type(self.shared_bytes) is not int or self.shared_bytes < 0:
            raise InvalidArgument(
                f"LaunchKernel: shared_bytes is a number from 0, not {self.shared_bytes!r}"
            )
        limits = self.kernel.said
        if isinstance(limits, Limits):  # it is compiled
            limits.check(self.block, self.shared_bytes)
            if self.cooperative:
                limits.check_together(self.grid, self.block)

    def changes(self) -> tuple[AccelRef, ...]:
        """Return the buffers but those for `const T*`, where the kernel is here to tell."""
        kernel = getattr(self.kernel, "array", None)
        if kernel is None:
            return (*self.arguments, *self._of(self.variables))
        parameters = zip(kernel.arguments.parameters, self.values, strict=False)
        places = zip_longest(self.arguments, [one for one, value in parameters if value is None])
        written = tuple(
            ref for ref, one in places if ref is not None and (one is None or not one.read_only)
        )
        return (*written, *self._of(self.variables))

    def only_reads(self) -> tuple[AccelRef, ...]:
        """Return the buffers for `const T*`; waits until the kernel is compiled, which tells.

        Raises:
            CompileError: it does not compile.
        """
        limits = self.kernel.result().said
        read_only = limits.read_only if isinstance(limits, Limits) else ()
        places = [one for one, value in zip_longest(read_only, self.values) if value is None]
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
