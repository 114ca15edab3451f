"""What a message made when it was replayed, beside what it had made."""

import math
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.lineage.markers import Result
from accel_lab.journal.entries.entry import Entry, describe
from accel_lab.journal.replay.tolerance import PASSED_ON, distance, eps_of

Verdict: TypeAlias = Literal["equal", "within tolerance", "differs"]
Value: TypeAlias = npt.NDArray[Any]


class Comparison(msgspec.Struct, frozen=True, eq=False):
    """One result, recorded and replayed.

    Attributes:
        entry: the message.
        verdict: equal bit for bit, within the tolerance of operation and dtype, or not.
        digests: of what was recorded and of what was replayed.
        off: the norm of the difference relative to that of the recorded result; None where only
            digests were recorded.
        may: how large that may be.
        inherited: an operand had differed already, so this may not be where it began.
        recorded: the recorded result, None where only its digest was recorded.
        replayed: the replayed one.
    """

    entry: Entry
    verdict: Verdict
    digests: tuple[str, str]
    off: float | None = None
    may: float = 0.0
    inherited: bool = False
    recorded: Value | None = None
    replayed: Value | None = None

    @property
    def worst(self) -> tuple[int, ...] | None:
        """The index of the element that differs most; None without values."""
        if self.recorded is None or self.replayed is None:
            return None
        kind = np.complex128 if self.recorded.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            off = np.abs(self.replayed.astype(kind) - self.recorded.astype(kind))
        odd = _bits(self.recorded) != _bits(self.replayed)
        off = np.where(odd, np.nan_to_num(off, nan=np.inf), -1.0)
        return tuple(int(i) for i in np.unravel_index(int(np.argmax(off)), off.shape))

    @property
    def elements(self) -> int | None:
        """How many elements differ in any bit; None without values."""
        if self.recorded is None or self.replayed is None:
            return None
        return int(np.count_nonzero(_bits(self.recorded) != _bits(self.replayed)))

    def without_values(self) -> "Comparison":
        """Return it without the arrays, to be kept."""
        return msgspec.structs.replace(self, recorded=None, replayed=None)

    def __str__(self) -> str:
        text = f"entry {self.entry.number}, {describe(self.entry)}: {self.verdict}"
        if self.verdict == "equal":
            return text
        if self.off is not None:
            eps = eps_of(str(self.recorded.dtype)) if self.recorded is not None else 0.0
            units = f" ({self.off / eps:.3g} eps)" if eps and math.isfinite(self.off) else ""
            text += f", off by {self.off:.3g}{units} where {self.may:.3g} may be"
        else:
            text += f", recorded as {self.digests[0]} and now {self.digests[1]}"
        if self.recorded is not None and self.replayed is not None and self.worst is not None:
            at = self.worst
            text += (
                f"; {self.elements} of {self.recorded.size} elements, most at {list(at)}: "
                f"{self.recorded[at]!r} was recorded, {self.replayed[at]!r} replayed"
            )
        if self.inherited:
            text += "; an operand had differed before"
        return text

    def __repr__(self) -> str:
        return f"<Comparison of {self}>"


def compare(
    entry: Entry,
    was: Result,
    now: tuple[str, bytes | None],
    kept: bytes | None,
    may: float,
    inherited: float | None,
) -> Comparison:
    """Compare the result of a message with the record of it.

    Parameters:
        was: the recorded digest.
        now: the digest of what was replayed, and its bytes if they were asked for.
        kept: the recorded bytes, if they were kept.
        may: how far the message may be off by itself.
        inherited: how far the operands had been off, None if they were equal.
    """
    digest, data = now
    digests = was.digest, digest
    if digest == was.digest:
        return Comparison(entry, "equal", digests, 0.0, inherited=inherited is not None)
    may += PASSED_ON * (inherited or 0.0)
    if kept is None or data is None:
        return Comparison(entry, "differs", digests, None, may, inherited is not None)
    recorded, replayed = (
        np.frombuffer(raw, numpy_dtype(was.dtype)).reshape(was.shape) for raw in (kept, data)
    )
    off = distance(recorded, replayed)
    verdict: Verdict = "within tolerance" if off <= may else "differs"
    return Comparison(entry, verdict, digests, off, may, inherited is not None, recorded, replayed)


def _bits(x: Value) -> npt.NDArray[Any]:
    """Return one value an element, equal where all bits are."""
    return np.ascontiguousarray(x).view(f"V{x.dtype.itemsize}").reshape(x.shape)
