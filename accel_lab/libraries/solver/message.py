"""What the messages of `solver` have in common: their dtypes, and what a status means."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np

from accel_lab.compute.message.operation import Operation
from accel_lab.errors import AccelError, InvalidArgument, LibraryError
from accel_lab.libraries.authoring.dtype_sets import SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.operand import kind
from accel_lab.libraries.authoring.shaped import Shaped
from accel_lab.libraries.solver.errors import (
    NotConverged,
    NotFinite,
    NotPositiveDefinite,
    SingularMatrix,
)

R = TypeVar("R")

NOT_FINITE = -1000
"""The status of a matrix that was not computed with, as it has an infinity or a NaN.

LAPACK's own negative ones count arguments.
"""


class SolverMessage(Shaped[R], frozen=True):
    """A message of `solver`: dense matrices behind any leading axes, in single or double."""

    library: ClassVar[str] = "solver"
    dtypes: ClassVar = SINGLE_AND_DOUBLE
    uncaptured: ClassVar = "its solver waits for the device"


Judge = Callable[[str, tuple[int, ...], int], AccelError]
"""Makes the error of a text that names the matrix, its index and LAPACK's info."""


def judged(message: Operation[Any], operand: str, info: Any, judge: Judge) -> AccelError | None:
    """Return what the first status but 0 means; there is one for each matrix of a stack."""
    bad = np.flatnonzero(info)
    if not bad.size:
        return None
    matrix = tuple(map(int, np.unravel_index(bad[0], info.shape)))
    code = int(info[matrix])
    name = f"matrix {list(matrix)} of {operand}" if matrix else operand
    if code == NOT_FINITE:
        text = f"{kind(message)}: {name} has an infinity or a NaN"
        return NotFinite(text, matrix=matrix)
    if code < 0:
        text = f"{kind(message)}: argument {-code} of the solver's routine was refused"
        return LibraryError(text, library="solver", code=code, name="INVALID_ARGUMENT")
    return judge(f"{kind(message)}: {name}", matrix, code)


def singular(text: str, matrix: tuple[int, ...], info: int) -> AccelError:
    """Return the error of a pivot that is 0 (LAPACK's getrf)."""
    pivot = info - 1
    return SingularMatrix(f"{text} is singular: pivot {pivot} is 0", matrix=matrix, pivot=pivot)


def indefinite(text: str, matrix: tuple[int, ...], info: int) -> AccelError:
    """Return the error of a minor that is not positive (LAPACK's potrf)."""
    text += f" is not positive definite: its leading minor of order {info} is not positive"
    return NotPositiveDefinite(text, matrix=matrix, order=info)


def unconverged(text: str, matrix: tuple[int, ...], info: int) -> AccelError:
    """Return the error of an iteration (LAPACK's gesvd, syevd, geev)."""
    text += f": the iteration has not converged (info {info})"
    return NotConverged(text, matrix=matrix, unconverged=info)


def require_one_of(message: Operation[Any], name: str, known: tuple[Any, ...]) -> None:
    """Refuse an option that is none of its values.

    Raises:
        InvalidArgument: it is not.
    """
    said = getattr(message, name)
    if type(said) is not type(known[0]) or said not in known:
        *first, last = map(repr, known)
        text = f"{name} is {said!r}; it may be {', '.join(first)} or {last}"
        raise InvalidArgument(f"{kind(message)}: {text}")


def require_count(message: Operation[Any], name: str) -> None:
    """Refuse a number that counts nothing.

    Raises:
        InvalidArgument: it is no integer from 0.
    """
    said = getattr(message, name)
    if type(said) is not int or said < 0:
        raise InvalidArgument(f"{kind(message)}: {name} is {said!r}; it is an integer from 0")
