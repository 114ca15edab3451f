"""Elements moved to and from places that integers say, and arrays that are filled."""

from typing import TYPE_CHECKING, Any

import numpy as np

from accel_lab.backends.wgpu.kernels.job import Job
from accel_lab.backends.wgpu.kernels.lacking import lacks
from accel_lab.backends.wgpu.kernels.parts import in_parts
from accel_lab.backends.wgpu.kernels.types import cast, raw_of, to_device, type_of
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.libraries.array.indexing import Assign, AssignAlong, AssignAt, Assignment, TakeAlong
from accel_lab.libraries.array.library import Take

if TYPE_CHECKING:
    from accel_lab.backends.wgpu.device.device import WgpuDevice

# An index of any size, that wraps around an extent: "value" and "extent" are u32 afterwards.
_WRAPPED = {
    "i32": "u32(modulo_i32({v}, i32({n})))",
    "u32": "({v} % {n})",
    "i64": "u32(modulo_i64({v}, i64({n})))",
    "u64": "u32({v} % u64({n}))",
}


class WgpuIndexing:
    """The part of `array` on wgpu that moves elements."""

    def __init__(self, device: "WgpuDevice") -> None:
        self._device = device

    def take(self, m: Take, x: Any, indices: Any, out: Any) -> None:
        """Write the elements at `indices`, which wrap around."""
        x, axis = (x.reshape((x.size,)), 0) if m.axis is None else (x, m.axis % x.ndim)
        tail = int(np.prod(x.shape[axis + 1 :], dtype=np.int64))
        job = self._moving(x, out)
        job.array("at", indices)
        for name, number in (("extent", x.shape[axis]), ("tail", tail), ("many", indices.size)):
            job.count(name, number)
        row = _wrapped(indices, "at(i / tail() % many())")
        job.run(
            f"let row = {row};\n"
            "let n = (i / (tail() * many()) * extent() + row) * tail() + i % tail();\n"
            "set_y(i, x(n));",
            out.size,
        )

    def take_along(self, m: TakeAlong, x: Any, indices: Any, out: Any) -> None:
        """Write an element for each index, which wrap around."""
        x, axis = (x.reshape((x.size,)), 0) if m.axis is None else (x, m.axis % x.ndim)
        if not out.size:
            return
        shape = list(out.shape)
        shape[axis] = x.shape[axis]
        self._along(x.broadcast_to(tuple(shape)), indices.broadcast_to(out.shape), out, axis)

    def _along(self, x: Any, indices: Any, out: Any, axis: int) -> None:
        job = self._moving(x, out)
        job.array("at", indices)
        tail = int(np.prod(x.shape[axis + 1 :], dtype=np.int64))
        for name, number in (
            ("extent", x.shape[axis]), ("tail", tail), ("many", out.shape[axis]),
        ):  # fmt: skip
            job.count(name, number)
        job.run(
            f"let row = {_wrapped(indices, 'at(i)')};\n"
            "let n = (i / (tail() * many()) * extent() + row) * tail() + i % tail();\n"
            "set_y(i, x(n));",
            out.size,
        )

    def assign(self, m: Assign, out: Any, value: Any) -> None:
        """Write to a part."""
        part = out[m.entries]
        if part.size:
            self._convert(self._as_elements(m, value, part.shape), part)

    def assign_at(self, m: AssignAt, out: Any, value: Any, *indices: Any) -> None:
        """Write to what is at integers, which wrap around; of several for one element any."""
        if not out.size or not all(one.size for one in indices):
            return
        places = m.places()
        chosen = np.broadcast_shapes(*(one.shape for one in indices))
        together = places == list(range(places[0], places[-1] + 1))
        front = places[0] if together else 0
        rest = [n for axis, n in enumerate(out.shape) if axis not in places]
        shape = (*rest[:front], *chosen, *rest[front:])
        # The axes that are chosen come last, then an element's place is that of its row and column.
        order = [axis for axis in range(out.ndim) if axis not in places]
        target = out.transpose((*order, *places))
        job = self._moving(self._as_elements(m, value, shape), target)
        for at, one in enumerate(indices):
            job.array(f"at{at}", one.broadcast_to(chosen))
            job.count(f"extent{at}", out.shape[places[at]])
        many = int(np.prod(chosen, dtype=np.int64))
        tail = int(np.prod(rest[front:], dtype=np.int64))
        job.count("many", many)
        job.count("tail", tail)
        lines = ["let one = i / tail() % many();"]
        lines += ["var n = i / (tail() * many()) * tail() + i % tail();"]
        for at, one in enumerate(indices):
            wrapped = _wrapped(one, f"at{at}(one)", f"extent{at}()")
            lines.append(f"n = n * extent{at}() + {wrapped};")
        lines.append("set_y(n, x(i));")
        job.run("\n".join(lines), int(np.prod(shape, dtype=np.int64)))

    def assign_along(self, m: AssignAlong, out: Any, value: Any, indices: Any) -> None:
        """Write at each index along an axis; they wrap around."""
        if not (out.size and indices.size):
            return
        axis = 0 if m.axis is None else m.axis % out.ndim
        if m.axis is None:
            value = value if m.value is None else value.reshape((value.size,))
            shape: tuple[int, ...] = indices.shape
            extent, many, tail = out.size, indices.size, 1
        else:
            whole = list(out.shape)
            whole[axis] = indices.shape[axis]
            shape = tuple(whole)
            extent, many = out.shape[axis], indices.shape[axis]
            tail = int(np.prod(out.shape[axis + 1 :], dtype=np.int64))
        job = self._moving(self._as_elements(m, value, shape), out)
        job.array("at", indices.broadcast_to(shape))
        for name, number in (("extent", extent), ("tail", tail), ("many", many)):
            job.count(name, number)
        job.run(
            f"let row = {_wrapped(indices, 'at(i)')};\n"
            "set_y((i / (tail() * many()) * extent() + row) * tail() + i % tail(), x(i));",
            int(np.prod(shape, dtype=np.int64)),
        )

    def _as_elements(self, m: Assignment, value: Any, shape: tuple[int, ...]) -> Any:
        """Return a value, or a number, as elements of the dtype of `out`, broadcast."""
        dtype = str(m.out.dtype)
        made = self._device.empty(() if m.value is None else value.shape, dtype)
        if m.value is None:
            with np.errstate(all="ignore"):
                self._fill(made, np.asarray(value, numpy_dtype(dtype)).tobytes())
        elif value.name == dtype:
            made = value
        else:
            self._convert(value, made)
        ahead = made.ndim - len(shape)  # axes of one element that the part has not
        if ahead > 0:
            made = made.reshape(made.shape[ahead:])
        return made.broadcast_to(shape)

    def _convert(self, x: Any, out: Any) -> None:
        """Write `x`, broadcast and converted."""
        x = x.broadcast_to(out.shape)
        if x.name == out.name:
            self._device.copy(x, out)
            return
        for name in (x.name, out.name):
            type_of(name)  # refuses what is only moved
        for part, to in in_parts(self._device, (x, out)):
            job = Job(self._device)
            job.array("x", part)
            job.array("y", to)
            job.run(f"set_y(i, {cast('x(i)', x.name, out.name)});", to.size)

    def _fill(self, out: Any, element: bytes) -> None:
        """Write one element everywhere, as bits: -0.0 keeps its sign."""
        words = to_device(np.frombuffer(element, np.uint8), out.name).view(np.uint32)
        kind = raw_of(out.name).stored
        made = ", ".join(f"word{at}()" for at in range(len(words)))
        for (part,) in in_parts(self._device, (out,)):
            job = Job(self._device)
            job.array("y", part, moved=True)
            for at, word in enumerate(words):
                job.count(f"word{at}", int(word))
            job.run(f"set_y(i, {kind}({made}));", part.size)

    def _moving(self, x: Any, out: Any) -> Job:
        job = Job(self._device)
        job.array("x", x, moved=True)
        job.array("y", out, moved=True)
        return job


def _wrapped(indices: Any, text: str, extent: str = "extent()") -> str:
    kind = type_of(indices.name, " as an index")
    if kind.value not in _WRAPPED:
        raise lacks(f"wgpu takes no index of {indices.name}")
    return _WRAPPED[kind.value].format(v=text, n=extent)
