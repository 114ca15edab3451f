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
        sent_bytes: of the notebook's values that went along, as they were sent.
        fetched_bytes: of what came to the notebook: its answer and what it displayed. Copies inside
            the context, as by CuPy's `get`, are not seen.
        kept_bytes: of the arrays that are kept on the host beside it, to be there again after a
            fault; nobody asked for these.
        peak: the most memory meanwhile: on `host` the resident set of the context's process, with
            the interpreter; on `cuda` what was in use of CuPy's pool, buffers included.
    """

    device: str
    device_s: float
    wall_s: float
    sent_bytes: int
    fetched_bytes: int
    kept_bytes: int
    peak: Peak | None

    def __repr__(self) -> str:
        return " · ".join(self._parts())

    def _repr_html_(self) -> str:
        return f"<small>{escape(repr(self))}</small>"

    def _parts(self) -> Iterator[str]:
        yield f"{self.device} {duration(self.device_s)}"
        yield f"wall {duration(self.wall_s)}"
        moved = (
            (self.sent_bytes, "sent"),
            (self.fetched_bytes, "fetched"),
            (self.kept_bytes, "kept for recovery"),
        )
        if words := ", ".join(f"{size(nbytes)} {what}" for nbytes, what in moved if nbytes):
            yield words
        if self.peak is not None:
            grown = self.peak.most_bytes - self.peak.before_bytes
            more = f" (+{size(grown)})" if grown > 0 else ""
            yield f"peak {size(self.peak.most_bytes)} {self.peak.kind}{more}"
