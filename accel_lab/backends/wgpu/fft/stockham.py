"""A pass of Stockham's transform along an axis, as a kernel; complex numbers are pairs.

Each invocation takes as many points as the radix and writes their own small transform, at places
that are in order after the last pass.
"""

import cmath
import math
from typing import Any

from accel_lab.backends.wgpu.kernels.functions import FUNCTIONS
from accel_lab.backends.wgpu.kernels.job import Job
from accel_lab.backends.wgpu.kernels.target import Target
from accel_lab.backends.wgpu.kernels.types import Type

RADICES = (8, 4, 2, 3, 5, 7, 11, 13)
"""What lengths are divided by, in this order."""

for _kind in ("f32", "f64"):
    FUNCTIONS[f"times_{_kind}"] = (
        f"fn times_{_kind}(a: vec2<{_kind}>, b: vec2<{_kind}>) -> vec2<{_kind}> {{\n"
        f"  return vec2<{_kind}>(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);\n}}"
    )

_KINDS = {"complex64": "f32", "complex128": "f64"}


def part_of(dtype: str) -> str:
    """Return WGSL's type of a complex number's parts."""
    return _KINDS[dtype]


def pairs_of(dtype: str) -> Type:
    """Return the type of complex numbers."""
    pair = f"vec2<{part_of(dtype)}>"
    return Type(pair, pair)


def radices_of(n: int) -> list[int] | None:
    """Return the radices of the passes over n points; None where a factor is too large."""
    found: list[int] = []
    for radix in RADICES:
        while n % radix == 0:
            found.append(radix)
            n //= radix
    return found if n == 1 else None


def enqueue_pass(
    device: Target, x: Any, out: Any, roots: Any, radix: int, done: int, points: int, inner: int
) -> None:
    """Enqueue a pass over lines of `points` elements, each `inner` elements from the next.

    Parameters:
        x: the elements in C order, any view.
        out: what is written, whole.
        roots: the powers of exp(-2 pi i / points).
        done: the product of the radices of the passes before.
    """
    kind, job = pairs_of(out.name), Job(device)
    for name, array in (("x", x), ("root", roots), ("y", out)):
        job.array(name, array, kind)
    each = points // radix
    for name, number in (
        ("each", each), ("done", done), ("step", each // done), ("inner", inner),
    ):  # fmt: skip
        job.count(name, number)
    part = part_of(out.name)
    small = _of_halves if radix in (2, 4, 8) else _of_sums
    job.run(
        "let s = i % inner(); let j = i / inner() % each(); let line = i / inner() / each();\n"
        f"let k = j % done(); let start = line * each() * {radix}u * inner() + s;\n"
        "let at = start + j * inner(); let gap = each() * inner();\n"
        f"let to = start + ((j - k) * {radix}u + k) * inner(); let apart = done() * inner();\n"
        + small(radix, part),
        out.size // radix,
    )


def _root(n: int, radix: int) -> complex:
    return cmath.exp(-2j * math.pi * n / radix)


def _pair(value: complex, part: str) -> str:
    end = "lf" if part == "f64" else ""
    return f"vec2<{part}>({value.real!r}{end}, {value.imag!r}{end})"


def _of_halves(radix: int, part: str) -> str:
    """Return the small transform of a power of two, by its even and its odd points."""
    lines = ["let v0 = x(at);"]
    lines += [
        f"let v{q} = times_{part}(x(at + {q}u * gap), root({q}u * k * step()));"
        for q in range(1, radix)
    ]

    def halved(names: list[str]) -> list[str]:
        if len(names) == 1:
            return names
        even, odd = halved(names[::2]), halved(names[1::2])
        made: list[str] = []
        for n, name in enumerate(odd):
            turned = name
            if 4 * n == len(names):
                turned = f"vec2<{part}>({name}.y, -{name}.x)"
            elif n:
                turned = f"times_{part}({name}, {_pair(_root(n, len(names)), part)})"
            made.append(f"t{len(lines)}")
            lines.append(f"let {made[-1]} = {turned};")
        sums: list[str] = []
        for sign in "+-":
            for a, b in zip(even, made, strict=True):
                sums.append(f"t{len(lines)}")
                lines.append(f"let {sums[-1]} = {a} {sign} {b};")
        return sums

    results = halved([f"v{q}" for q in range(radix)])
    lines += [f"set_y(to + {p}u * apart, {name});" for p, name in enumerate(results)]
    return "\n".join(lines)


def _of_sums(radix: int, part: str) -> str:
    """Return the small transform of an odd number of points, by its definition."""
    roots = ", ".join(_pair(_root(n, radix), part) for n in range(radix))
    pairs = f"array<vec2<{part}>, {radix}>"
    return (
        f"var roots = {pairs}({roots}); var v = {pairs}();\n"
        f"for (var q = 0u; q < {radix}u; q = q + 1u) {{\n"
        f"  v[q] = times_{part}(x(at + q * gap), root(q * k * step()));\n}}\n"
        f"for (var p = 0u; p < {radix}u; p = p + 1u) {{\n"
        f"  var sum = v[0];\n  for (var q = 1u; q < {radix}u; q = q + 1u) {{\n"
        f"    sum = sum + times_{part}(v[q], roots[p * q % {radix}u]);\n  }}\n"
        "  set_y(to + p * apart, sum);\n}"
    )
