"""A kernel over arrays of any strides: what it reads and writes, its numbers, and its text.

The strides are numbers of the job, so that one kernel serves all arrays that lie alike.
"""

import struct
from typing import Any

from accel_lab.backends.wgpu.kernels.functions import needed
from accel_lab.backends.wgpu.kernels.parts import Window, in_parts, window
from accel_lab.backends.wgpu.kernels.target import Target
from accel_lab.backends.wgpu.kernels.types import (
    Type,
    number_text,
    number_words,
    raw_of,
    type_of,
    words_of,
)

THREADS = 256
MOST_GROUPS = 65_535
_MAIN = """
@compute @workgroup_size({threads})
fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>) {{
  let i = (w.y * P[1] + w.x) * {threads}u + l.x;
  if (i < P[0]) {{
{body}
  }}
}}
"""


class Job:
    """Work on as many elements as there are: one invocation each, whose number is `i`.

    An array `x` that is read is `x(n)` in the text, its element n in C order, of the type that is
    computed in. One that is written is `set_y(n, value)`, and may be read, too. Of one that is
    moved the elements are bits.
    """

    def __init__(self, device: Target) -> None:
        self._device = device
        self._words = [0, 0]
        self._buffers: list[Window] = []
        self._text: list[str] = []

    def array(self, name: str, x: Any, as_type: Type | None = None, *, moved: bool = False) -> None:
        """Bind an array by its name in the text.

        Parameters:
            as_type: what its elements are, if not what is computed in.
        """
        binding, start = self._bind(x)
        kind = as_type or (raw_of(x.name) if moved else type_of(x.name))
        load = kind.load.format(f"{name}_all[{name}_at(i)]")
        save = kind.save.format("v")
        head = f"@group(0) @binding({binding}) var<storage, read_write>"
        self._text += [
            f"{head} {name}_all: array<{kind.stored}>;",
            self._place(name, x, start),
            f"fn {name}(i: u32) -> {kind.value} {{ return {load}; }}",
            f"fn set_{name}(i: u32, v: {kind.value}) {{ {name}_all[{name}_at(i)] = {save}; }}",
        ]

    def matrices(self, name: str, x: Any) -> None:
        """Bind matrices: element (r, c) of number z is `x(x_base(z), r, c)` in the text."""
        binding, start = self._bind(x)
        kind, size = type_of(x.name), x.dtype.itemsize
        corner = x.like(x.layout[None, ..., 0, 0])  # no element: nothing is behind it
        row, column = (step // size for step in x.strides[-2:])
        at = len(self._words)
        self._words += [row % 2**32, column % 2**32]
        head = f"@group(0) @binding({binding}) var<storage, read_write>"
        place = f"base + r * P[{at}u] + c * P[{at + 1}u]"
        load = kind.load.format(f"{name}_all[{place}]")
        save = kind.save.format("v")
        self._text += [
            f"{head} {name}_all: array<{kind.stored}>;",
            self._place(f"{name}_base", corner, start).replace(
                f"{name}_base_at", f"{name}_base", 1
            ),
            f"fn {name}(base: u32, r: u32, c: u32) -> {kind.value} {{ return {load}; }}",
            f"fn set_{name}(base: u32, r: u32, c: u32, v: {kind.value}) {{",
            f"  {name}_all[{place}] = {save};\n}}",
        ]

    def count(self, name: str, value: int) -> None:
        """Have a whole number of 32 bits, by its name in the text; modulo 2**32."""
        at = len(self._words)
        self._words.append(value % 2**32)
        self._text.append(f"fn {name}() -> u32 {{ return P[{at}u]; }}")

    def number(self, name: str, value: Any, dtype: str) -> None:
        """Have a number of a dtype, which the text reads as `name()`."""
        at, kind = len(self._words), type_of(dtype)
        self._words += struct.unpack("<2I", number_words(value, dtype))
        text = number_text(kind.value, at)
        self._text.append(f"fn {name}() -> {kind.value} {{ return {text}; }}")

    @property
    def bindings(self) -> int:
        """How many buffers it takes."""
        return len(self._buffers)

    def run(self, body: str, count: int) -> None:
        """Enqueue it for this many elements."""
        if not count:
            return
        groups = -(-count // THREADS)
        across = min(groups, MOST_GROUPS)
        down = -(-groups // across)
        self.run_groups(_MAIN.format(threads=THREADS, body=body), count, (across, down, 1))

    def run_groups(self, main: str, count: int, groups: tuple[int, int, int]) -> None:
        """Enqueue it with a main function of its own."""
        words = self._words
        words[0], words[1] = count, groups[0]
        own = "\n".join([*self._text, main])
        text = f"@group(0) @binding(0) var<storage, read> P: array<u32>;\n{needed(own)}\n{own}"
        kernel = self._device.kernels.made(text, len(self._buffers))
        packed = struct.pack(f"<{len(words)}I", *words)
        bound: list[Any] = [packed, *self._buffers]
        self._device.queue.dispatch(*kernel, bound, groups)

    def _bind(self, x: Any) -> tuple[int, int]:
        """Bind an array; return the binding's number, and its first element in the buffer.

        Raises:
            InvalidArgument: it is larger than a binding.
        """
        bound, start = window(self._device, x)
        self._buffers.append(bound)
        return len(self._buffers), start

    def _place(self, name: str, x: Any, first: int) -> str:
        """Return the function that says where element i lies."""
        at = len(self._words)
        self._words.append(x.offset - first if x.size else 0)
        head, start = f"fn {name}_at(i: u32) -> u32", f"P[{at}u]"
        if x.flags.c_contiguous or x.size <= 1:
            return f"{head} {{ return {start} + i; }}"
        axes = _joined(x)
        if all(step == 0 for _, step in axes):
            return f"{head} {{ return {start}; }}"
        lines = [f"{head} {{ var left = i; var place = {start};"]
        for number, (extent, step) in enumerate(reversed(axes)):
            base = len(self._words)
            self._words += [extent, step % 2**32]
            if number + 1 < len(axes):
                lines.append(f"  place = place + (left % P[{base}u]) * P[{base + 1}u];")
                lines.append(f"  left = left / P[{base}u];")
            else:
                lines.append(f"  place = place + left * P[{base + 1}u];")
        return "\n".join([*lines, "  return place; }"])


def _joined(x: Any) -> list[tuple[int, int]]:
    """Return the axes as (extent, step in elements), those joined that lie as one."""
    size = x.dtype.itemsize
    axes: list[tuple[int, int]] = []
    for extent, stride in zip(x.shape, x.strides, strict=True):
        step = stride // size
        if extent == 1:
            continue
        if axes and axes[-1][1] == step * extent:
            axes[-1] = axes[-1][0] * extent, step
        else:
            axes.append((extent, step))
    return axes


def copy(device: Target, x: Any, out: Any) -> None:
    """Copy elements to an array of the same shape and dtype."""
    count = out.size
    if not count:
        return
    whole = x.flags.c_contiguous and out.flags.c_contiguous
    if whole and x.block is not out.block:
        step = 4 * words_of(x.name)
        device.queue.copy(
            x.block.buffer, x.offset * step, out.block.buffer, out.offset * step, count * step
        )
        return
    for piece, to in in_parts(device, (x, out)):
        job = Job(device)
        job.array("x", piece, moved=True)
        job.array("y", to, moved=True)
        job.run("set_y(i, x(i));", to.size)
