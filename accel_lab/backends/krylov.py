"""Systems solved by iteration, with vectors of NumPy's or of CuPy's: one code for both.

A product and a preconditioner are functions. Norms and inner products are fetched in each step, so
on a device this waits, and belongs on a thread that may. Where rounding has made the residual that
is carried along smaller than the true one, the iteration begins anew from where it is.

Runs in a context's process.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Map: TypeAlias = Callable[[Any], Any]


class Found(NamedTuple):
    """Where an iteration has ended.

    Attributes:
        residual: the true one, relative to the norm of the right-hand side.
        converged: whether it is as small as was asked for.
    """

    x: Any
    iterations: int
    residual: float
    converged: bool


class System(NamedTuple):
    """A system to be solved.

    Attributes:
        xp: the module of its vectors.
        multiply: by the matrix.
        precondition: about solves it.
        rtol: how small the residual is to be, relative to the norm of `b`.
        most: how many iterations there may be.
    """

    xp: Any
    multiply: Map
    precondition: Map
    b: Any
    x: Any
    rtol: float
    most: int

    def norm(self, x: Any) -> float:
        """Return the Euclidean norm; waits."""
        return float(self.xp.linalg.norm(x))

    def inner(self, x: Any, y: Any) -> Any:
        """Return the inner product, of x's conjugates; waits."""
        return self.xp.vdot(x, y).item()

    def solved(self, begin: Callable[["System", Any, Any, float, int], tuple[Any, int]]) -> Found:
        """Have `begin` iterate from where it is, until the true residual is small enough.

        Parameters:
            begin: is given x, its residual, the norm to reach and how many iterations it may do;
                returns a better x and how many it did, 0 if it could do none.
        """
        size = self.norm(self.b)
        if size == 0:
            return Found(self.xp.zeros_like(self.b), 0, 0.0, converged=True)
        x, done, goal = self.x, 0, self.rtol * size
        while True:
            residual = self.b - self.multiply(x)
            norm = self.norm(residual)
            if norm <= goal or done >= self.most or not np.isfinite(norm):
                return Found(x, done, norm / size, converged=norm <= goal)
            x, more = begin(self, x, residual, goal, self.most - done)
            if not more:
                return Found(x, done, norm / size, converged=False)
            done += more


def cg(system: System, x: Any, r: Any, goal: float, most: int) -> tuple[Any, int]:
    """Iterate by conjugate gradients (Hestenes and Stiefel; Saad, algorithm 9.1)."""
    p, before = r, 1.0
    for done in range(most):
        z = system.precondition(r)
        now = system.inner(r, z)
        p = z if not done else z + p * (now / before)
        q = system.multiply(p)
        curvature = system.inner(p, q)
        if curvature == 0 or now == 0:
            return x, done
        step = now / curvature
        x, r, before = x + p * step, r - q * step, now
        if not system.norm(r) > goal:
            return x, done + 1
    return x, most


def bicgstab(system: System, x: Any, r: Any, goal: float, most: int) -> tuple[Any, int]:
    """Iterate by stabilized biconjugate gradients (van der Vorst; Saad, algorithm 7.7)."""
    shadow, p, v = r, r, r
    before = alpha = omega = 1.0
    for done in range(most):
        now = system.inner(shadow, r)
        if now == 0 or omega == 0:
            return x, done
        p = r if not done else r + (p - v * omega) * (now / before * (alpha / omega))
        along = system.precondition(p)
        v = system.multiply(along)
        against = system.inner(shadow, v)
        if against == 0:
            return x, done
        alpha = now / against
        x, s = x + along * alpha, r - v * alpha
        if not system.norm(s) > goal:
            return x, done + 1
        aside = system.precondition(s)
        t = system.multiply(aside)
        size = system.inner(t, t)
        omega = system.inner(t, s) / size if size else 0.0
        x, r, before = x + aside * omega, s - t * omega, now
        if not system.norm(r) > goal:
            return x, done + 1
    return x, most


def gmres(restart: int) -> Callable[[System, Any, Any, float, int], tuple[Any, int]]:
    """Return one cycle of GMRES(restart), preconditioned from the right (Saad, algorithm 9.5).

    A vector is made orthogonal to those before it twice, which is enough (Giraud and others, 2005).
    """

    def cycle(system: System, x: Any, r: Any, goal: float, most: int) -> tuple[Any, int]:
        xp, length = system.xp, min(restart, most, r.size)
        basis = xp.zeros((length + 1, r.size), r.dtype)
        upper = np.zeros((length + 1, length), np.result_type(r.dtype, np.float64))
        rotations: list[tuple[Any, Any]] = []
        size = system.norm(r)
        target = np.zeros(length + 1, upper.dtype)
        target[0] = size
        basis[0] = r / size
        done = 0
        for at in range(length):
            w = system.multiply(system.precondition(basis[at]))
            for _ in range(2):
                part = basis[: at + 1].conj() @ w
                w = w - part @ basis[: at + 1]
                upper[: at + 1, at] += part.get() if hasattr(part, "get") else part
            norm = system.norm(w)
            upper[at + 1, at] = norm
            if not np.isfinite(norm):
                break
            done = at + 1
            _rotate(upper, target, rotations, at)
            if not abs(target[at + 1]) > goal or norm == 0:
                break
            basis[at + 1] = w / norm
        if not done or not np.diagonal(upper)[:done].all():
            return x, 0
        weights = np.linalg.solve(np.triu(upper[:done, :done]), target[:done])
        along = xp.asarray(weights.astype(r.dtype)) @ basis[:done]
        return x + system.precondition(along), done

    return cycle


def _rotate(upper: Any, target: Any, rotations: list[tuple[Any, Any]], at: int) -> None:
    """Make a new column of a Hessenberg matrix triangular, by one rotation more."""
    column = upper[:, at]
    for row, (c, s) in enumerate(rotations):
        first, second = column[row], column[row + 1]
        column[row], column[row + 1] = c * first + s * second, c * second - np.conj(s) * first
    first, second = column[at], column[at + 1]
    length = np.hypot(abs(first), abs(second))
    if length == 0:
        c, s = 1.0, 0.0
    elif first == 0:
        c, s = 0.0, 1.0
    else:
        c = abs(first) / length
        s = first / abs(first) * np.conj(second) / length
    rotations.append((c, s))
    column[at], column[at + 1] = c * first + s * second, 0
    target[at], target[at + 1] = c * target[at], -np.conj(s) * target[at]
