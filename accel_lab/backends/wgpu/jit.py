"""The user's own kernels on wgpu: WGSL, whose bindings of group 0 are the arguments in order.

`var<storage>` takes a buffer, `var<uniform>` of a number takes a number. The threads of a block are
the source's own, `@workgroup_size`.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import wgpu

from accel_lab.backends.wgpu.adapters import ALIGNMENT
from accel_lab.backends.wgpu.kernels.job import MOST_GROUPS
from accel_lab.compute.arrays.dtypes import itemsize, numpy_dtype
from accel_lab.errors import CompileError, InvalidArgument
from accel_lab.libraries.authoring.operand import describe
from accel_lab.libraries.jit.comments import without_comments
from accel_lab.libraries.jit.limits import PLAIN, LaunchOptions, Limits
from accel_lab.libraries.jit.messages import KernelFacts, Triple
from accel_lab.libraries.jit.program import Program
from accel_lab.libraries.jit.signature import Parameter
from accel_lab.libraries.jit.tensor_map import Tiling

if TYPE_CHECKING:
    from accel_lab.backends.wgpu.device.device import WgpuDevice

_DTYPES = {
    "f32": "float32",
    "i32": "int32",
    "u32": "uint32",
    "f64": "float64",
    "i64": "int64",
    "u64": "uint64",
}
_BINDING = re.compile(
    r"@group\(\s*0u?\s*\)\s*@binding\(\s*(?P<at>\d+)u?\s*\)\s*"
    r"var\s*<\s*(?P<space>storage|uniform)\s*(?:,\s*(?P<access>\w+)\s*)?>\s*"
    r"(?P<name>\w+)\s*:\s*(?P<type>[^;]+);"
)
_ELEMENT = re.compile(r"\b(f32|i32|u32|f64|i64|u64)\b")
_NOT_HERE = "is for CUDA; WGSL has nothing like it"
_SIZE = r"@workgroup_size\(([^)]*)\)[^{{;]*\bfn\s+{name}\s*\("


class Built(NamedTuple):
    """A kernel that was compiled."""

    program: Program
    pipeline: Any
    layout: Any
    parameters: tuple[Parameter, ...]
    threads: Triple


class WgpuJit:
    """Compiles WGSL; the driver keeps on disk what it made."""

    languages = ("wgsl",)

    def __init__(self, device: "WgpuDevice") -> None:
        self._device = device
        self._kernels = 0

    def build(self, program: Program) -> Built:
        """Compile; any thread.

        Raises:
            CompileError: it does not compile.
            InvalidArgument: a binding is neither a buffer nor a number.
        """
        text = program.text
        parameters = _parameters(program.name, without_comments(text))
        device = self._device.device
        kinds = [
            "uniform" if not one.is_pointer else "read-only-storage" if one.read_only else "storage"
            for one in parameters
        ]
        try:
            module = device.create_shader_module(code=text)
            entries = [
                {"binding": at, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}}
                for at, kind in enumerate(kinds)
            ]
            layout = device.create_bind_group_layout(entries=entries)
            pipeline = device.create_compute_pipeline(
                layout=device.create_pipeline_layout(bind_group_layouts=[layout]),
                compute={"module": module, "entry_point": program.name},
            )
        except wgpu.GPUError as error:
            log = str(error)
            said = f"{program.name} does not compile:\n{log}"
            raise CompileError(said, log=log, name=program.name) from None
        return Built(program, pipeline, layout, parameters, _threads(program.name, text))

    def load(self, built: Built) -> "WgpuKernel":
        """Make it fit for launches."""
        self._kernels += 1
        return WgpuKernel(self._device, built)

    def statistics(self) -> Mapping[str, int]:
        """Count kernels."""
        return {"kernels": self._kernels}


class WgslArguments:
    """The arguments of one kernel, checked and packed.

    Attributes:
        parameters: what the bindings are.
        reads, writes: the buffers that were packed last, by what the kernel may do to them.
        packed: what the bindings get: bytes, or (buffer, place, size).
    """

    def __init__(self, name: str, parameters: tuple[Parameter, ...], most_bound: int) -> None:
        self.name, self.parameters = name, parameters
        self._most_bound = most_bound
        self.reads: tuple[Any, ...] = ()
        self.writes: tuple[Any, ...] = ()
        self.packed: list[Any] = []

    def pack(
        self,
        refs: tuple[Any, ...],
        values: tuple[Any, ...],
        stream: Any,
        maps: tuple[Tiling, ...] = (),  # noqa: ARG002 - `Limits` has refused them
    ) -> None:
        """Take buffers and numbers, and order `stream` after what the buffers wait for.

        Raises:
            InvalidArgument: they do not fit the bindings.
        """
        if len(values) != len(self.parameters):
            takes = ", ".join(one.text for one in self.parameters) or "none"
            count = f"{len(self.parameters)} arguments ({takes})"
            raise InvalidArgument(f"{self.name} takes {count}, not {len(values)}")
        left = iter(refs)
        packed: list[Any] = []
        reads: list[Any] = []
        writes: list[Any] = []
        for at, (parameter, value) in enumerate(zip(self.parameters, values, strict=True)):
            ref = next(left) if value is None else None
            if parameter.is_pointer != (ref is not None):
                given = repr(value) if ref is None else describe(ref)
                raise self._refused(at, given)
            if ref is None:
                packed.append(self._number(at, value))
                continue
            packed.append(self._buffer(at, ref))
            (reads if parameter.read_only else writes).append(ref)
        written = [one.array.block for one in writes]
        if any(one.array.block in written for one in reads):
            text = "reads a buffer that it writes, or another view of it; WebGPU forbids that"
            raise InvalidArgument(f"{self.name} {text}: copy it first, with array.copy")
        for ref in reads:
            ref.storage.read_on(stream)
        for ref in writes:
            ref.storage.write_on(stream)
        self.packed, self.reads, self.writes = packed, tuple(reads), tuple(writes)

    def forget(self) -> None:
        """Forget the buffers."""
        self.packed, self.reads, self.writes = [], (), ()

    def _buffer(self, at: int, ref: Any) -> tuple[Any, int, int]:
        array, element = ref.array, self.parameters[at].element
        if ref.dtype != element:
            raise self._refused(at, describe(ref), "convert it with array.cast")
        place = array.offset * itemsize(element)
        if not array.flags.c_contiguous or place % ALIGNMENT or not array.size:
            why = f"a view of {describe(ref)} with gaps, without elements, or that begins"
            text = f"{why} at no multiple of {ALIGNMENT} bytes"
            raise self._refused(at, text, "copy it first, with array.copy")
        if array.nbytes > self._most_bound:
            text = (
                f"{describe(ref)}, of {array.nbytes} bytes: a binding of this adapter has at most "
            )
            raise self._refused(at, f"{text}{self._most_bound}", "give it a part of it")
        return array.block.buffer, place, array.nbytes

    def _number(self, at: int, value: Any) -> bytes:
        code = self.parameters[at].code
        native = numpy_dtype(code)
        if native.kind in "iu":
            info = np.iinfo(native)
            if type(value) not in (bool, int) or not info.min <= value <= info.max:
                raise self._refused(at, repr(value))
        elif type(value) not in (bool, int, float):
            raise self._refused(at, repr(value))
        return np.asarray(value, native).tobytes().ljust(16, b"\0")

    def _refused(self, at: int, given: str, advice: str = "") -> InvalidArgument:
        text = f"argument {at} of {self.name} is {given}, and the binding takes "
        text += self.parameters[at].text
        return InvalidArgument(f"{text}; {advice}" if advice else text)


class WgpuKernel:
    """A kernel that can be launched."""

    nbytes = 0

    def __init__(self, device: "WgpuDevice", built: Built) -> None:
        self._device, self._built = device, built
        self.name = built.program.name
        self.arguments: Any = WgslArguments(self.name, built.parameters, device.most_bound)
        read_only = tuple([one.read_only for one in built.parameters])
        threads = math.prod(built.threads)
        self.limits = Limits(
            self.name,
            0,
            threads=threads,
            read_only=read_only,
            why_not=_NOT_HERE,
            no_cluster=_NOT_HERE,
            no_programmatic=_NOT_HERE,
            no_maps=_NOT_HERE,
        )

    def enqueue(
        self,
        grid: Triple,
        block: Triple,
        shared_bytes: int,
        stream: Any,  # noqa: ARG002 - there is one queue
        options: LaunchOptions,
    ) -> None:
        """Launch it with what was packed.

        Raises:
            InvalidArgument: the adapter or the kernel allows no such launch.
        """
        self.limits.check(block, shared_bytes)
        if options is not PLAIN:
            self.limits.check_options(grid, block, options)
        threads = self._built.threads
        if block != threads:
            raise InvalidArgument(f"{self.name}: block is {block}, and @workgroup_size {threads}")
        if max(grid) > MOST_GROUPS:
            raise InvalidArgument(
                f"{self.name}: grid {grid} is more than {MOST_GROUPS} a dimension"
            )
        self._device.queue.flush()  # so that a mistake is told of nothing but this
        packed = self.arguments.packed
        self._device.queue.dispatch(self._built.pipeline, self._built.layout, packed, grid)
        self._device.queue.flush()

    def again(
        self,
        grid: Triple,
        block: Triple,
        shared_bytes: int,
        stream: Any,
        options: LaunchOptions,
    ) -> Callable[[], object] | None:
        """Return nothing: it is packed anew each time."""

    def facts(self) -> KernelFacts:
        """Return what is known of it."""
        texts = tuple(one.text for one in self._built.parameters)
        numbers = {"max threads": math.prod(self._built.threads)}
        return KernelFacts(self.name, texts, "", False, "", "", numbers)  # noqa: FBT003


def _parameters(name: str, text: str) -> tuple[Parameter, ...]:
    """Return the bindings of group 0 as parameters, in order.

    Raises:
        InvalidArgument: one is missing between others, or of another type.
    """
    found = sorted(_BINDING.finditer(text), key=lambda one: int(one["at"]))
    if [int(one["at"]) for one in found] != list(range(len(found))):
        raise InvalidArgument(f"{name}: the bindings of group 0 are 0, 1 and so on, each once")
    made = []
    for one in found:
        element = _ELEMENT.search(one["type"])
        plain = one["type"].strip()
        if element is None or (one["space"] == "uniform" and plain != element[1]):
            takes = "a storage binding is an array of numbers, and a uniform one a number"
            raise InvalidArgument(f"{name}: {takes}, not {one['name']}: {plain}")
        dtype = _DTYPES[element[1]]
        size = itemsize(dtype)
        if one["space"] == "uniform":
            made.append(Parameter(size, size, dtype, "", 0, 1, read_only=False))
        else:
            is_read = one["access"] != "read_write"
            made.append(Parameter(8, 8, "pointer", dtype, size, 1, read_only=is_read))
    return tuple(made)


def _threads(name: str, text: str) -> Triple:
    """Return the threads of a block as the source says it in numbers.

    Raises:
        InvalidArgument: it does not.
    """
    found = re.search(_SIZE.format(name=re.escape(name)), without_comments(text))
    extents = (
        [one.strip().rstrip("ui") for one in found[1].split(",") if one.strip()] if found else []
    )
    if not extents or not all(one.isdecimal() for one in extents):
        raise InvalidArgument(f"{name}: write @workgroup_size before fn {name}, in numbers")
    x, y, z = (*map(int, extents), 1, 1)[:3]
    return x, y, z
