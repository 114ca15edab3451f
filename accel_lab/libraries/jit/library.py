"""Kernels of your own: CUDA C++, compiled by NVRTC on `cuda` and by the C++ compiler on `host`.

A kernel's own signature types its arguments. The source is the same for both; on `host` a block's
threads are run in turns by one core, to be tested and stepped through, not to be fast.
"""

import pickle
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.message.operation import OWN_TIMEOUT
from accel_lab.compute.wire.codec import Answer
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import array_of
from accel_lab.libraries.jit.arguments import Arguments
from accel_lab.libraries.jit.kernel import Kernel
from accel_lab.libraries.jit.launchable import Launchable
from accel_lab.libraries.jit.limits import LaunchOptions, Limits
from accel_lab.libraries.jit.messages import (
    Compile,
    Extents,
    InspectKernel,
    KernelFacts,
    KernelOf,
    LaunchKernel,
    Triple,
)
from accel_lab.libraries.jit.module_globals import Globals, Holder, bind
from accel_lab.libraries.jit.tensor_map import TensorMap, tensor_map

__all__ = [
    "Compile",
    "Globals",
    "InspectKernel",
    "Kernel",
    "KernelFacts",
    "KernelOf",
    "LaunchKernel",
    "TensorMap",
    "compile",
    "inspect_kernel",
    "kernel_of",
    "launch_kernel",
    "tensor_map",
]


def compile(  # noqa: A001 - the word for it
    device: Device,
    source: str,
    name: str,
    *,
    options: Iterable[str] = (),
    headers: Mapping[str, str] | None = None,
    globals: Globals | None = None,  # noqa: A002 - the word for them
    language: str = "cuda",
) -> Kernel:
    """Compile the kernel `name` of CUDA C++ `source` for a device; does not block.

    Parameters:
        name: with its template arguments, if it has any: "scale<float, 4>".
        options: -std=c++17 (the default), -std=c++20, -Dname=value, -Uname, --use_fast_math,
            --fmad=false, --maxrregcount=n, -lineinfo, -w. What `host` has no use for, it ignores.
        headers: texts by the names that `#include` has for them.
        globals: those of another kernel, to share its `__constant__` and `__device__` variables.
        language: "cuda" on `host` and `cuda`, "wgsl" on `wgpu`.

    Raises:
        InvalidArgument: no such name or option, or more than a message holds (1 MiB).
    """
    return Kernel(device, source, name, options, headers, globals, language=language)


def kernel_of(module: Any, name: str, parameters: str = "") -> Launchable:
    """Take a kernel out of a module: the same as `module.kernel(name)`; does not block.

    Parameters:
        module: what `module.compile` or `module.load` has returned.
        parameters: its C++ types, where the module does not tell them.

    Raises:
        StaleRef: the module was unloaded.
    """
    kernel: Launchable = module.kernel(name, parameters)
    return kernel


def launch_kernel(
    kernel: Launchable,
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
    """Launch a kernel: the same as to call it.

    Raises:
        InvalidArgument: there is no such launch.
    """
    return kernel(
        grid,
        block,
        args,
        shared_bytes=shared_bytes,
        cooperative=cooperative,
        cluster=cluster,
        programmatic=programmatic,
        timeout_s=timeout_s,
    )


def inspect_kernel(kernel: Launchable) -> Reply[KernelFacts]:
    """Ask what became of a kernel: the same as its `inspect`."""
    return kernel.inspect()


class Loaded(Holder, Protocol):
    """A kernel that can be launched, in its context.

    Attributes:
        name: the kernel's, template arguments included.
        arguments: what packs its arguments.
        nbytes: the size of the code.
        limits: what a launch of it may have.
    """

    name: str
    arguments: Arguments
    nbytes: int
    limits: Limits

    def enqueue(
        self, grid: Triple, block: Triple, shared_bytes: int, stream: Any, options: LaunchOptions
    ) -> None:
        """Launch it with what `arguments` has packed; raises InvalidArgument if it is too large."""

    def again(
        self, grid: Triple, block: Triple, shared_bytes: int, stream: Any, options: LaunchOptions
    ) -> Callable[[], object]:
        """Return what does once more what `enqueue` has just done, whatever is packed since."""

    def facts(self) -> KernelFacts:
        """Return what is known of it."""


class JitLibrary(Protocol):
    """What a backend provides."""

    def build(self, program: Compile) -> Any:
        """Compile, or find it on disk; any thread, and it may block. Raises CompileError."""

    def load(self, built: Any) -> Loaded:
        """Make what was built fit for launches; on the dispatcher thread."""

    def statistics(self) -> Mapping[str, int]:
        """Return counters: kernels loaded, found on disk, compiled."""


class JitActor(LibraryActor):
    """Compiles and launches the user's kernels in one context."""

    library = "jit"
    lib: JitLibrary

    @handles(Compile)
    def compile(self, m: Compile, launch: Launch) -> None:
        """Compile beside the dispatcher."""
        languages = getattr(self.lib, "languages", ("cuda",))
        if m.language not in languages:
            raise InvalidArgument(
                f"Compile: this backend compiles {' and '.join(languages)}, not {m.language}"
            )

        def keep(built: Any) -> None:
            kernel = self.lib.load(built)
            launch.keep(kernel)
            _tell_limits(kernel, launch)

        launch.defer(lambda: self.lib.build(m), keep)

    @handles(KernelOf)
    def kernel_of(self, m: KernelOf, launch: Launch) -> None:
        """Keep a kernel of a module here, as all kernels, whose code the module counts."""
        kernel = launch.read(m.module).kernel(m.name, m.parameters)
        launch.keep(kernel, 0)
        _tell_limits(kernel, launch)

    @handles(LaunchKernel)
    def launch_kernel(self, m: LaunchKernel, launch: Launch) -> None:
        """Pack the arguments, in order after what they wait for, and enqueue."""
        kernel: Loaded = array_of(m.kernel)
        stream = launch.stream
        named = {**dict.fromkeys(m.constants, True), **dict.fromkeys(m.variables, False)}
        kernel.arguments.pack(m.arguments, m.values, stream, m.maps)
        shape = m.grid, m.block, m.shared_bytes, stream.native, m.options
        back = bind(kernel, named, m.refs[len(m.refs) - len(named) :], stream) if named else None
        kernel.enqueue(*shape)
        if back is not None:
            back()
        if launch.comes_again and not named:
            arguments = kernel.arguments
            launch.prepare(
                kernel.again(*shape),
                reads=(m.kernel, *arguments.reads),
                writes=arguments.writes,
            )

    @handles(InspectKernel)
    def inspect_kernel(self, m: InspectKernel, launch: Launch) -> None:
        """Answer with the facts."""
        data = pickle.dumps(array_of(m.kernel).facts())
        launch.finish = lambda: [Answer(launch.seq, data, True, [])]  # noqa: FBT003

    def forget_addresses(self) -> None:
        """Have every kernel take its buffers anew."""
        for kernel in self.context.table.things(self.library):
            kernel.array.arguments.forget()

    def statistics(self) -> Mapping[str, int]:
        """Count kernels, and how often the disk had one."""
        return self.lib.statistics()


def _tell_limits(kernel: Loaded, launch: Launch) -> None:
    """Answer with what a launch may have, so that one is refused at the call."""
    limits = pickle.dumps(kernel.limits)
    launch.finish = lambda: [Answer(launch.seq, limits, True, [])]  # noqa: FBT003
