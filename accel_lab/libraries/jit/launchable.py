"""A kernel as the notebook holds it, whatever it is made of: called to launch it."""

import asyncio
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from typing import Any, Self

import numpy as np

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device
from accel_lab.compute.graph.parameter import Parameter
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import OWN_TIMEOUT
from accel_lab.compute.message.validation import require_timeout
from accel_lab.compute.requests.message_cache import MessageCache
from accel_lab.display.progress import REFRESH_S, Bar
from accel_lab.errors import CompileError, InvalidArgument, StaleRef
from accel_lab.libraries.jit.messages import (
    NULL,
    CompiledKernel,
    Extents,
    InspectKernel,
    KernelFacts,
    LaunchKernel,
    cluster_of,
    triples,
)
from accel_lab.libraries.jit.module_globals import Globals
from accel_lab.libraries.jit.tensor_map import TensorMap, Tiling
from accel_lab.uncopied import Address

_PLAIN = frozenset({int, float, bool, complex, bytes})
_PYTHONS: tuple[tuple[Any, type[Any]], ...] = (
    (bool, bool),
    (int, int),  # or a class of the user's own, as an IntEnum
    ((float, np.floating), float),  # `item` of a long double is one
    ((complex, np.complexfloating), complex),
    (bytes, bytes),
)
_FINAL = (CompileError, InvalidArgument)
"""With these it would fail again."""


class Launchable(Address):
    """A kernel of one device; call it to launch it.

    It can be called before it is compiled: the launches wait for it, and fail with
    `DependencyFailed` if it does not compile. When its context has been lost the next call makes
    it again by itself. Any thread may call; nothing here blocks but `result` and `await`.

    Attributes:
        device: where it runs.
        name: the kernel's, template arguments included.
        globals: the `__constant__` and `__device__` variables that have buffers.
        ref: the handle of the compiled kernel.
    """

    globals: Globals
    _instead = "compile its source where you need it"

    def __init__(
        self,
        device: Device,
        name: str,
        make: Callable[[], Handle[CompiledKernel]],
        ref: Handle[CompiledKernel] | None = None,
    ) -> None:
        self.device = device
        self.name = name
        self._make = make
        self._repeats = MessageCache()
        self.ref = make() if ref is None else ref

    def __call__(
        self,
        grid: Extents,
        block: Extents,
        args: Iterable[Any] = (),
        *,
        shared_bytes: int = 0,
        cooperative: bool = False,
        cluster: Extents | None = None,
        programmatic: bool = False,
        timeout_s: float | None = OWN_TIMEOUT,
    ) -> Reply[None]:
        """Launch it, and return the handle of its end; does not block.

        Parameters:
            grid: how many blocks: an integer, or up to three, x first.
            block: how many threads in a block, likewise.
            args: buffers, numbers, bytes for a struct, and tensor maps, in the kernel's order. None
                is a pointer to nothing.
            shared_bytes: the size of the kernel's `extern __shared__` array.
            cooperative: whether all blocks are there at once, so that they may wait for each other
                by `this_grid().sync()`; a grid that does not fit is refused.
            cluster: how many blocks are in a cluster, likewise, at most 8: they run side by side
                and may read each other's shared memory. The grid, in blocks, is a multiple of it.
            programmatic: whether it may begin before the kernel ahead of it has ended. It waits for
                that itself, before it reads what others wrote.
            timeout_s: how long it may run before its context is replaced, as in `device.ask`; when
                not given the device's, 600 s unless you said otherwise; None is for ever.

        Raises:
            InvalidArgument: there is no such launch; what only the compiled kernel tells, as how
                many threads a block of it may have, is the reply's failure until it is compiled.
                So are the types, which the context checks.
            StaleRef: a buffer is of a lost generation.
        """
        if timeout_s is not OWN_TIMEOUT:
            require_timeout(timeout_s)
        ref = self.ref
        if ref.failed and not isinstance(ref.error, _FINAL):
            ref = self.ref = self._make()  # it was lost while it was being compiled
        arguments = args if type(args) is tuple else _several(args)
        how = shared_bytes, cooperative, cluster, programmatic
        given = grid, block, *how, self.globals.given, *arguments
        ask, repeats = self.device.ask_of, self._repeats
        try:
            return ask(LaunchKernel, (ref, *given), _launch, timeout_s, repeats)
        except StaleRef:
            if ref.is_valid:
                raise
            ref = self.ref = self._make()
            return ask(LaunchKernel, (ref, *given), _launch, timeout_s, repeats)

    def inspect(self) -> Reply[KernelFacts]:
        """Ask what became of it: its parameters, its files, the compiler's warnings."""
        if not self.ref.is_valid and not isinstance(self.ref.error, _FINAL):
            self.ref = self._make()
        return self.device.ask(InspectKernel(self.ref))

    def result(self, timeout_s: float | None = None) -> Self:
        """Block until it is compiled, and return it; a bar shows what takes over a second.

        Raises:
            CompileError: it does not compile.
            TimeoutError: not within `timeout_s` seconds; the compilation goes on.
        """
        until = None if timeout_s is None else time.monotonic() + timeout_s
        with self._bar() as bar:
            while not self.ref.done:
                left = REFRESH_S if until is None else min(until - time.monotonic(), REFRESH_S)
                if left <= 0:
                    text = f"{self.name} did not compile within {timeout_s} s; it still compiles"
                    raise TimeoutError(text)
                with suppress(TimeoutError):
                    self.ref.result(left)
                bar.at(0)
        self.ref.result()
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        """Wait in the running loop until it is compiled."""
        with self._bar() as bar:
            bar.tick(asyncio.get_running_loop())
            yield from self.ref.__await__()
        return self

    def _bar(self) -> Bar:
        return Bar(f"compile {self.name}", None)

    @property
    def done(self) -> bool:
        """Whether the compilation has ended; never blocks."""
        return self.ref.done

    @property
    def error(self) -> BaseException | None:
        """Why it does not compile, or None; never blocks."""
        return self.ref.error

    def __repr__(self) -> str:
        if self.ref.waits:
            state = "to be compiled when it is used"
        elif not self.ref.done:
            state = "compiling"
        elif self.ref.failed:
            state = f"failed: {type(self.ref.error).__name__}"
        else:
            state = "ready" if self.ref.is_valid else "to be compiled again"
        return f"<{type(self).__name__} {self.name} of {self.device.name}, {state}>"


def _several(args: Any) -> Iterable[Any]:
    """Return the arguments of a launch.

    Raises:
        InvalidArgument: it is one, which some would take for its rows or letters.
    """
    if isinstance(args, AccelRef | np.ndarray | str | bytes) or not isinstance(args, Iterable):
        raise InvalidArgument(
            f"args are the kernel's arguments in a tuple, as (x, n) or (x,), not {args!r}"
        )
    return args


def _launch(
    kernel: Handle[CompiledKernel],
    grid: Extents,
    block: Extents,
    shared_bytes: int,
    cooperative: bool,  # noqa: FBT001 - as they travel
    cluster: Extents | None,
    programmatic: bool,  # noqa: FBT001 - as they travel
    named: tuple[tuple[str, ...], tuple[str, ...], tuple[AccelRef, ...]],
    *args: Any,
) -> LaunchKernel:
    """Return the message: grid and block as they travel, a value of None for each buffer."""
    blocks, threads = triples(grid, block)
    refs: list[AccelRef] = []
    values: list[Any] = []
    maps: list[Tiling] = []
    for arg in args:
        if type(arg) in _PLAIN:
            values.append(arg)
        elif isinstance(arg, AccelRef):
            refs.append(arg)
            values.append(None)
        elif isinstance(arg, TensorMap):
            maps.append(arg.tiling._replace(argument=len(values)))
            refs.append(arg.ref)
            values.append(None)
        else:
            values.append(_travelling(arg))
    constants, variables, theirs = named
    places = tuple(refs) + theirs
    return LaunchKernel(
        kernel,
        blocks,
        threads,
        places,
        tuple(values),
        shared_bytes,
        bool(cooperative),
        constants,
        variables,
        cluster_of(cluster),
        bool(programmatic),
        tuple(maps),
    )


def _travelling(arg: Any) -> Any:
    """Return an argument as it travels.

    Raises:
        InvalidArgument: it is nothing that a kernel takes.
    """
    if arg is None:
        return NULL
    if type(arg) in _PLAIN or isinstance(arg, Parameter):
        return arg
    if isinstance(arg, np.void):
        return arg.tobytes()
    if isinstance(arg, bytearray | memoryview):
        return bytes(arg)
    if isinstance(arg, np.ndarray):
        raise InvalidArgument(
            f"an argument is a NumPy array {arg.dtype}{list(arg.shape)}; put() it on the device"
        )
    plain = arg.item() if isinstance(arg, np.generic) else arg
    for kinds, python in _PYTHONS:
        if isinstance(plain, kinds):
            return python(plain)
    raise InvalidArgument(
        f"a kernel takes buffers, numbers and bytes, and no {type(arg).__name__}: {arg!r}"
    )
