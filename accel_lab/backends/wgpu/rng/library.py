"""Random numbers on wgpu: Philox's words, integers and uniforms of them, bit for bit the host's.

A product and a sum that have to be rounded apart are kept apart by a conversion, as a driver may
join the two.
"""

from typing import TYPE_CHECKING, Any

from accel_lab.backends.wgpu.kernels.job import Job
from accel_lab.backends.wgpu.kernels.types import cast
from accel_lab.backends.wgpu.rng.philox import words_text
from accel_lab.libraries.rng.messages import words_each

if TYPE_CHECKING:
    from accel_lab.backends.wgpu.device.device import WgpuDevice

Place = tuple[int, int, int]

_CHOSEN = {
    1: "let v = (u64(w0) * span()) >> 32u;",
    2: "var v = (u64(w1) << 32u) | u64(w0); if (span() != 0lu) { v = high(v, span()); }",
    4: (
        "let first = high((u64(w1) << 32u) | u64(w0), span());\n"
        "let second = (u64(w3) << 32u) | u64(w2);\n"
        "let rest = second * span(); let sum = rest + first;\n"
        "let v = high(second, span()) + select(0lu, 1lu, sum < rest);"
    ),
}


class WgpuRng:
    """Enqueues on the device's queue; used by the dispatcher thread."""

    def __init__(self, device: "WgpuDevice") -> None:
        self._device = device

    def integers(self, out: Any, place: Place, *, low: int, span: int) -> None:
        """Write integers from `low` on, `span` different ones."""
        each = words_each(span)
        job = self._job(out, place)
        job.number("low", low, "uint64")
        job.number("span", span, "uint64")
        made = cast("(v + low())", "uint64", out.name)
        job.run(f"{words_text(each)}\n{_CHOSEN[each]}\nset_y(i, {made});", out.size)

    def uniform(
        self,
        out: Any,
        place: Place,
        *,
        dtype: str,
        low: float,
        span: float,
        high: float,
    ) -> None:
        """Write low + u span, at most `high`."""
        real, each = _real(dtype)
        job = self._job(out, place)
        value = "u"
        if (low, span) != (0, 1):
            for name, number in (("low", low), ("span", span), ("most", high)):
                job.number(name, number, real)
            product = "f32(f64(u) * f64(span()))" if real == "float32" else "(u * span())"
            value = f"min({product} + low(), most())"
        text = f"{words_text(each)}\nlet u = {_unit(real, 'w0', 'w1')};"
        job.run(f"{text}\nset_y(i, {cast(value, real, out.name)});", out.size)

    def normal(self, out: Any, place: Place, *, dtype: str, mean: float, std: float) -> None:
        """Write z std + mean, where two z are of two uniform numbers (Box and Muller)."""
        real, each = _real(dtype)
        job = self._job(out, place)
        job.number("mean", mean, real)
        job.number("deviation", std, real)
        one, other = ("w0", "w1"), ("w1", "w2")
        if each > 1:
            other = "w2", "w3"
        kind = "f32" if real == "float32" else "f64"
        product = "f32(f64(z) * f64(deviation()))" if real == "float32" else "(z * deviation())"
        text = (
            f"{words_text(2 * each, 'i / 2u')}\n"
            f"let u = f64({_unit(real, *one)}); let t = f64({_unit(real, *other)});\n"
            "let turned = turn_fine(t);\n"
            "let side = select(turned.x, turned.y, (i & 1u) == 1u);\n"
            f"let z = {kind}(sqrt(-2.0lf * log_fine(u)) * side);"
        )
        made = cast(f"({product} + mean())", real, out.name)
        job.run(f"{text}\nset_y(i, {made});", out.size)

    def _job(self, out: Any, place: Place) -> Job:
        job = Job(self._device)
        job.array("y", out)
        for name, number in zip(("seed", "stream", "offset"), place, strict=True):
            job.number(name, number, "uint64")
        return job


def _real(dtype: str) -> tuple[str, int]:
    """Return in what numbers are made, and how many words one takes."""
    return ("float64", 2) if dtype == "float64" else ("float32", 1)


def _unit(real: str, low: str, high: str) -> str:
    """Return the uniform number in (0, 1] of a word, or of two."""
    if real == "float32":
        return f"(f32({low}) * 2.3283064365386963e-10 + 1.1641532182693481e-10)"
    bits = f"(u64({low}) ^ (u64({high}) << 21u))"
    return f"(f64({bits}) * 1.1102230246251565e-16lf + 5.551115123125783e-17lf)"
