"""The draws of a generator from distributions that have parameters."""

from abc import ABC, abstractmethod
from typing import Any, SupportsIndex

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.authoring.operand import Scalar, plain
from accel_lab.libraries.authoring.shape import Integers as Extents
from accel_lab.libraries.rng.distributions import (
    Beta,
    Binomial,
    Cauchy,
    Exponential,
    Gamma,
    LogNormal,
    Poisson,
)
from accel_lab.libraries.rng.messages import Draw
from accel_lab.libraries.rng.place import described, whole
from accel_lab.libraries.rng.selection import Discrete, Permutation


class Draws(ABC):
    """Draws each kind of number from the words after those of the draw before.

    Shape and dtype are those of `out` where there is one, else the shape is ().
    """

    @abstractmethod
    def _draw(
        self,
        kind: type[Draw],
        what: tuple[tuple[int, ...], str],
        out: AccelRef | None,
        **options: Any,
    ) -> AccelRef:
        """Send a draw, and count its words."""

    def log_normal(
        self,
        shape: Extents | None = None,
        dtype: object = None,
        *,
        mean: Scalar = 0.0,
        std: Scalar = 1.0,
        out: AccelRef | None = None,
    ) -> AccelRef:
        """Draw what has a normal logarithm, as `LogNormal` says; float32 unless told otherwise.

        Raises:
            InvalidArgument: something does not fit.
        """
        what = described(shape, dtype, out, "float32")
        return self._draw(LogNormal, what, out, mean=plain(mean), std=plain(std))

    def exponential(
        self,
        shape: Extents | None = None,
        dtype: object = None,
        *,
        scale: Scalar = 1.0,
        out: AccelRef | None = None,
    ) -> AccelRef:
        """Draw exponential numbers, as `Exponential` says; float32 unless told otherwise.

        Raises:
            InvalidArgument: something does not fit.
        """
        what = described(shape, dtype, out, "float32")
        return self._draw(Exponential, what, out, scale=plain(scale))

    def cauchy(
        self,
        shape: Extents | None = None,
        dtype: object = None,
        *,
        median: Scalar = 0.0,
        scale: Scalar = 1.0,
        out: AccelRef | None = None,
    ) -> AccelRef:
        """Draw from the Cauchy distribution, as `Cauchy` says; float32 unless told otherwise.

        Raises:
            InvalidArgument: something does not fit.
        """
        what = described(shape, dtype, out, "float32")
        return self._draw(Cauchy, what, out, median=plain(median), scale=plain(scale))

    def gamma(
        self,
        alpha: Scalar,
        shape: Extents | None = None,
        dtype: object = None,
        *,
        scale: Scalar = 1.0,
        out: AccelRef | None = None,
    ) -> AccelRef:
        """Draw from the gamma distribution, as `Gamma` says; float32 unless told otherwise.

        Raises:
            InvalidArgument: something does not fit.
        """
        what = described(shape, dtype, out, "float32")
        return self._draw(Gamma, what, out, alpha=plain(alpha), scale=plain(scale))

    def beta(
        self,
        a: Scalar,
        b: Scalar,
        shape: Extents | None = None,
        dtype: object = None,
        *,
        out: AccelRef | None = None,
    ) -> AccelRef:
        """Draw from the beta distribution, as `Beta` says; float32 unless told otherwise.

        Raises:
            InvalidArgument: something does not fit.
        """
        what = described(shape, dtype, out, "float32")
        return self._draw(Beta, what, out, a=plain(a), b=plain(b))

    def poisson(
        self,
        mean: Scalar,
        shape: Extents | None = None,
        dtype: object = None,
        *,
        out: AccelRef | None = None,
    ) -> AccelRef:
        """Draw from the Poisson distribution, as `Poisson` says; int64 unless told otherwise.

        Raises:
            InvalidArgument: something does not fit.
        """
        what = described(shape, dtype, out, "int64")
        return self._draw(Poisson, what, out, mean=plain(mean))

    def binomial(
        self,
        n: SupportsIndex,
        p: Scalar,
        shape: Extents | None = None,
        dtype: object = None,
        *,
        out: AccelRef | None = None,
    ) -> AccelRef:
        """Draw from the binomial distribution, as `Binomial` says; int64 unless told otherwise.

        Raises:
            InvalidArgument: something does not fit.
        """
        what = described(shape, dtype, out, "int64")
        return self._draw(Binomial, what, out, n=whole(n), p=plain(p))

    def discrete(
        self,
        weights: AccelRef,
        shape: Extents | None = None,
        dtype: object = None,
        *,
        out: AccelRef | None = None,
    ) -> AccelRef:
        """Draw indices of weights, as `Discrete` says; int64 unless told otherwise.

        Raises:
            InvalidArgument: something does not fit.
        """
        what = described(shape, dtype, out, "int64")
        return self._draw(Discrete, what, out, weights=weights)

    def permutation(
        self, n: SupportsIndex, dtype: object = None, *, out: AccelRef | None = None
    ) -> AccelRef:
        """Draw a random order of the integers below `n`, as `Permutation` says.

        int64 unless told otherwise.

        Raises:
            InvalidArgument: something does not fit.
        """
        what = described((whole(n),), dtype, out, "int64")
        return self._draw(Permutation, what, out)
