"""Running sums, orders and choices on wgpu."""

from typing import Any

import numpy as np

from accel_lab.backends.wgpu.array.indexing import WgpuIndexing
from accel_lab.backends.wgpu.kernels.job import Job
from accel_lab.backends.wgpu.kernels.types import cast, type_of
from accel_lab.libraries.array.ordering import Argsort, Searchsorted, Sort
from accel_lab.libraries.array.scanning import Scan

AT_ONCE = 128
"""How many elements an invocation goes through."""


class WgpuOrdering(WgpuIndexing):
    """The part of `array` on wgpu that goes along an axis."""

    def scan(self, m: Scan, x: Any, out: Any) -> None:
        """Write sums or products, of float16 in float32 and rounded once."""
        if not out.size:
            return
        axis = 0 if m.axis is None else m.axis
        lines = x.reshape((x.size,)) if m.axis is None else x
        dtype = "float32" if out.name in ("float16", "bfloat16") else out.name
        to = _last(out, axis)
        self._scan(m.op, _last(lines, axis), to, to.size // to.shape[-1], to.shape[-1], dtype)

    def _scan(self, op: str, x: Any, out: Any, rows: int, each: int, dtype: str) -> None:
        """Write what the elements before and at each one make, row by row."""
        kind, parts = type_of(dtype), -(-each // AT_ONCE)
        sign = "+" if op == "cumsum" else "*"
        if kind.kind == "b":
            sign = "||" if op == "cumsum" else "&&"
        value = cast("x(row * each() + k)", x.name, dtype)
        step = kind.rounded.format(f"(made {sign} {value})") if kind.kind != "f" else ""
        step = step or f"(made {sign} {value})"
        begin = (
            "let row = i / parts(); let first = i % parts() * AT_ONCE;\n"
            "let end = min(first + AT_ONCE, each()); var k = first;\n"
            f"var made = {value};"
        ).replace("AT_ONCE", f"{AT_ONCE}u")
        before: Any = None
        if parts > 1:
            totals = self._device.empty((rows, parts), dtype)
            job = self._lines(x, each, parts)
            job.array("y", totals)
            job.run(
                f"{begin}\nfor (k = first + 1u; k < end; k = k + 1u) {{ made = {step}; }}\n"
                "set_y(i, made);",
                rows * parts,
            )
            before = self._device.empty((rows, parts), dtype)
            self._scan(op, totals, before, rows, parts, dtype)
        job = self._lines(x, each, parts)
        job.array("y", out)
        write = f"set_y(row * each() + k, {cast('made', dtype, out.name)});"
        if before is not None:
            job.array("z", before)
            joined = step.replace("made", "z(i - 1u)", 1)
            begin += f"\nif (first > 0u) {{ made = {joined}; }}"
        job.run(
            f"{begin}\n{write}\n"
            f"for (k = first + 1u; k < end; k = k + 1u) {{ made = {step}; {write} }}",
            rows * parts,
        )

    def _lines(self, x: Any, each: int, parts: int) -> Job:
        job = Job(self._device)
        job.array("x", x)
        job.count("each", each)
        job.count("parts", parts)
        return job

    def sort(self, m: Sort, x: Any, out: Any) -> None:
        """Write the elements in order, NaN last."""
        self._sort(m.axis, x, out, places=False)

    def argsort(self, m: Argsort, x: Any, out: Any) -> None:
        """Write where the elements in order are; of equal ones the first comes first."""
        self._sort(m.axis, x, out, places=True)

    def _sort(self, axis: int | None, x: Any, out: Any, *, places: bool) -> None:
        """Sort rows as Batcher's bitonic network does: the steps are the same for all."""
        if not out.size:
            return
        if axis is None or not x.ndim:
            x, out, axis = x.reshape((x.size,)), out.reshape((out.size,)), 0
        lines, to = _last(x, axis), _last(out, axis)
        each = lines.shape[-1]
        rows, room = lines.size // each, 1 << (each - 1).bit_length()
        keys = self._device.empty((rows, room), x.name)
        found = self._device.empty((rows, room), "uint32")
        job = Job(self._device)
        for name, array in (("x", lines), ("y", keys), ("z", found)):
            job.array(name, array)
        job.count("each", each)
        job.count("room", room)
        job.run(
            "let row = i / room(); let k = i % room(); let is_there = k < each();\n"
            "set_y(i, x(row * each() + select(0u, k, is_there)));\n"
            "set_z(i, select(0xffffffffu, k, is_there));",
            rows * room,
        )
        size = 2
        while size <= room:
            gap = size // 2
            while gap:
                self._exchange(keys, found, size, gap)
                gap //= 2
            size *= 2
        job = Job(self._device)
        job.array("x", found if places else keys)
        job.array("y", to)
        job.count("each", each)
        job.count("room", room)
        value = cast("x(i / each() * room() + i % each())", "uint32" if places else x.name, to.name)
        job.run(f"set_y(i, {value});", to.size)

    def _exchange(self, keys: Any, found: Any, size: int, gap: int) -> None:
        """Put pairs in order, up and down by turns; what only fills a row is last."""
        job = Job(self._device)
        job.array("y", keys)
        job.array("z", found)
        job.count("size", size)
        job.count("gap", gap)
        job.count("room", keys.shape[-1])
        none = "0xffffffffu"
        ahead = f"({_before('b', 'a', keys.name)})"
        behind = f"({_before('a', 'b', keys.name)})"
        job.run(
            "let low = i / gap() * gap() * 2u + i % gap(); let high = low + gap();\n"
            "let a = y(low); let b = y(high); let p = z(low); let q = z(high);\n"
            f"var later = {ahead} || (!{behind} && q < p);\n"
            f"if (p == {none} || q == {none}) {{ later = p > q; }}\n"
            "let is_up = (low & size()) == 0u || size() == room();\n"
            "if (p != q && later == is_up) {\n"
            "  set_y(low, b); set_y(high, a); set_z(low, q); set_z(high, p);\n}",
            keys.size // 2,
        )

    def searchsorted(self, m: Searchsorted, a: Any, v: Any, out: Any) -> None:
        """Write where elements belong, by halving."""
        dtype = m.common()
        at = cast("a(middle)", a.name, dtype)
        job = Job(self._device)
        for name, array in (("a", a), ("v", v), ("y", out)):
            job.array(name, array)
        job.count("each", a.size)
        goes_on = _before("here", "sought", dtype)
        if m.side == "right":
            goes_on = f"!({_before('sought', 'here', dtype)})"
        job.run(
            f"let sought = {cast('v(i)', v.name, dtype)}; var low = 0u; var high = each();\n"
            "while (low < high) {\n"
            f"  let middle = (low + high) / 2u; let here = {at};\n"
            f"  if ({goes_on}) {{ low = middle + 1u; }} else {{ high = middle; }}\n}}\n"
            f"set_y(i, {cast('low', 'uint32', out.name)});",
            out.size,
        )

    # These two wait for the device: they run beside the dispatcher.

    def mask(self, x: Any, mask: Any) -> Any:
        """Return what is kept."""
        rest = x.shape[mask.ndim :]
        tail = int(np.prod(rest, dtype=np.int64))
        found, count = self._counted(mask)
        out = self._device.empty((count, *rest), x.name)
        if out.size:
            job = self._moving(x, out)
            job.array("kept", mask)
            job.array("number", found)
            job.count("tail", tail)
            job.run(
                "let row = i / tail();\n"
                "if (kept(row)) { set_y((number(row) - 1u) * tail() + i % tail(), x(i)); }",
                x.size,
            )
        return out

    def nonzero(self, x: Any, _: str) -> Any:
        """Return the places of what is not zero, a row for each axis."""
        truths = self._device.empty(x.shape, "bool")
        self._convert(x, truths)
        found, count = self._counted(truths)
        out = self._device.empty((x.ndim, count), "int64")
        left = 1
        for axis in reversed(range(x.ndim)):
            if count:
                job = Job(self._device)
                for name, array in (("kept", truths), ("number", found), ("y", out[axis])):
                    job.array(name, array)
                job.count("left", left)
                job.count("extent", x.shape[axis])
                place = cast("(i / left() % extent())", "uint32", "int64")
                job.run(f"if (kept(i)) {{ set_y(number(i) - 1u, {place}); }}", x.size)
            left *= x.shape[axis]
        return out

    def _counted(self, mask: Any) -> tuple[Any, int]:
        """Return how many are True up to each place, and in all; waits for the device."""
        if not mask.size:
            return None, 0
        flat = mask.reshape((mask.size,))
        found = self._device.empty((mask.size,), "uint32")
        self._scan("cumsum", flat, found, 1, mask.size, "uint32")
        return found, int(self._device.read(found[-1:])[0])


def _last(x: Any, axis: int) -> Any:
    """Return a view with an axis as the last one."""
    return x.like(np.moveaxis(x.layout, axis, -1))


def _before(a: str, b: str, dtype: str) -> str:
    """Return whether an element comes before another one, NaN behind all."""
    kind = type_of(dtype)
    if kind.kind == "b":
        return f"!{a} && {b}"
    if kind.kind == "f":
        nan = f"is_nan_{kind.value}"
        return f"{a} < {b} || ({nan}({b}) && !{nan}({a}))"
    return f"{a} < {b}"
