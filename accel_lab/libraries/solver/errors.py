"""What a matrix may be that an operation cannot use; each is a LinAlgError of NumPy's too."""

from numpy.linalg import LinAlgError

from accel_lab.errors import AccelError


class MatrixError(AccelError, LinAlgError, fields=("matrix",)):
    """A matrix does not have what the operation needs; the base of the solvers' own errors.

    Attributes:
        matrix: which one of a stack it is, by its index at the leading axes; empty for a single
            one. It is the first of several.
    """

    remedy = "Look at the matrix that the text names."
    matrix: tuple[int, ...] = ()


class SingularMatrix(MatrixError, fields=("pivot",)):
    """A matrix is exactly singular, so it has no inverse.

    Attributes:
        pivot: the first position on the diagonal of U that is 0, from 0 (LAPACK's info less 1).
    """

    remedy = (
        "Use solver.lstsq, which takes such matrices, or look for a column that depends on those "
        "before it."
    )
    pivot: int


class NotPositiveDefinite(MatrixError, fields=("order",)):
    """A matrix is not positive definite.

    Attributes:
        order: that of the first leading minor that is not positive (LAPACK's info).
    """

    remedy = "Use solver.solve or solver.eigh, which take such matrices, or add to the diagonal."
    order: int


class NotConverged(MatrixError, fields=("unconverged",)):
    """An iteration for singular values or eigenvalues has not converged.

    Attributes:
        unconverged: LAPACK's info: how many numbers are not found, or which is the first.
    """

    remedy = "Scale the matrix, or use another driver."
    unconverged: int


class NotFinite(MatrixError):
    """A matrix with an infinity or a NaN has no singular values or eigenvalues."""

    remedy = "Look for the infinity or NaN with array.isfinite."
