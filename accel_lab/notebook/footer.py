"""What a `%%gpu` cell cost, in the one line below it."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from accel_lab.compute.execution.backend import Peak
from accel_lab.display.sizes import size
from accel_lab.views.timeline import duration


@dataclass(frozen=True)
class Footer:
    """What a cell cost; a part that was not measured is not shown.

    Attributes:
        device: where it ran.
        device_s: by the device's clock, as `compute.meter` says.
        wall_s: from the sending of the cell to its answer, in this process.
        in_bytes: of the notebook's values that went along, as they were sent.
        out_bytes: of what came to the notebook: what it displayed, and the arrays that are kept on
            the host for a fault. Copies inside the context, as by CuPy's `get`, are not seen.
        peak: the most memory meanwhile: on `host` the resident set of the context's process, with
            the interpreter; on `cuda` what was in use of CuPy's pool, buffers included.
    """

    device: str
    device_s: float
    wall_s: float
    in_bytes: int
    out_bytes: int
    peak: Peak | None

    def __repr__(self) -> str:
        return " · ".join(self._parts())

    def _repr_html_(self) -> str:
        return f"<small>{escape(repr(self))}</small>"

    def _parts(self) -> Iterator[str]:
        yield f"{self.device} {duration(self.device_s)}"
        yield f"wall {duration(self.wall_s)}"
        moved = (("in", self.in_bytes), ("out", self.out_bytes))
        if words := ", ".join(f"{size(nbytes)} {way}" for way, nbytes in moved if nbytes):
            yield words
        if self.peak is not None:
            grown = self.peak.most_bytes - self.peak.before_bytes
            more = f" (+{size(grown)})" if grown > 0 else ""
            yield f"peak {size(self.peak.most_bytes)} {self.peak.kind}{more}"
