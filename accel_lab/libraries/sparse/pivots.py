"""What a factorization or a triangular solution fails with, and what it asks of its matrix."""

from typing import Any

from accel_lab.errors import Directive, LibraryError


class BadPivot(LibraryError, fields=("row",)):
    """A pivot is missing or zero, or, where it has to be positive, is not.

    Attributes:
        row: of the first such pivot; -1 where the library does not say which.
    """

    directive = Directive.RESUME  # the library is well, the matrix is not
    remedy = "Store and add a small number on the diagonal, or reorder the rows."
    row: int = -1


def judged(what: str, status: Any) -> BadPivot | None:
    """Return what is wrong by a status on the device: the row of the first bad pivot, or -1."""
    row = int(status[0])
    if row < 0:
        return None
    return BadPivot(f"{what}: the diagonal of row {row} is zero or not stored", row=row)
