"""Functions that draw once from a distribution, with a seed that is given or made up.

Each takes seed, stream and offset as `words` does, and does not block. Shape and dtype are those of
`out` where there is one, else the shape is ().
"""

from typing import SupportsIndex

from accel_lab.compute.device import Device, device_first
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
from accel_lab.libraries.rng.place import described, placed, whole


def log_normal(
    device: Device,
    shape: Extents | None = None,
    dtype: object = None,
    *,
    mean: Scalar = 0.0,
    std: Scalar = 1.0,
    seed: SupportsIndex | None = None,
    stream: SupportsIndex = 0,
    offset: SupportsIndex = 0,
    out: AccelRef | None = None,
) -> AccelRef:
    """Draw what has a normal logarithm, as `LogNormal` says; float32 unless told otherwise.

    Raises:
        InvalidArgument: something does not fit.
    """
    what = described(shape, dtype, out, "float32")
    place = placed(seed, stream, offset)
    message = LogNormal(*what, *place, out, mean=plain(mean), std=plain(std))
    return device_first(device).ask(message)


def exponential(
    device: Device,
    shape: Extents | None = None,
    dtype: object = None,
    *,
    scale: Scalar = 1.0,
    seed: SupportsIndex | None = None,
    stream: SupportsIndex = 0,
    offset: SupportsIndex = 0,
    out: AccelRef | None = None,
) -> AccelRef:
    """Draw exponential numbers, as `Exponential` says; float32 unless told otherwise.

    Raises:
        InvalidArgument: something does not fit.
    """
    what = described(shape, dtype, out, "float32")
    place = placed(seed, stream, offset)
    message = Exponential(*what, *place, out, scale=plain(scale))
    return device_first(device).ask(message)


def cauchy(
    device: Device,
    shape: Extents | None = None,
    dtype: object = None,
    *,
    median: Scalar = 0.0,
    scale: Scalar = 1.0,
    seed: SupportsIndex | None = None,
    stream: SupportsIndex = 0,
    offset: SupportsIndex = 0,
    out: AccelRef | None = None,
) -> AccelRef:
    """Draw from the Cauchy distribution, as `Cauchy` says; float32 unless told otherwise.

    Raises:
        InvalidArgument: something does not fit.
    """
    what = described(shape, dtype, out, "float32")
    place = placed(seed, stream, offset)
    return device_first(device).ask(
        Cauchy(*what, *place, out, median=plain(median), scale=plain(scale))
    )


def gamma(
    device: Device,
    alpha: Scalar,
    shape: Extents | None = None,
    dtype: object = None,
    *,
    scale: Scalar = 1.0,
    seed: SupportsIndex | None = None,
    stream: SupportsIndex = 0,
    offset: SupportsIndex = 0,
    out: AccelRef | None = None,
) -> AccelRef:
    """Draw from the gamma distribution, as `Gamma` says; float32 unless told otherwise.

    Raises:
        InvalidArgument: something does not fit.
    """
    what = described(shape, dtype, out, "float32")
    place = placed(seed, stream, offset)
    return device_first(device).ask(
        Gamma(*what, *place, out, alpha=plain(alpha), scale=plain(scale))
    )


def beta(
    device: Device,
    a: Scalar,
    b: Scalar,
    shape: Extents | None = None,
    dtype: object = None,
    *,
    seed: SupportsIndex | None = None,
    stream: SupportsIndex = 0,
    offset: SupportsIndex = 0,
    out: AccelRef | None = None,
) -> AccelRef:
    """Draw from the beta distribution, as `Beta` says; float32 unless told otherwise.

    Raises:
        InvalidArgument: something does not fit.
    """
    what = described(shape, dtype, out, "float32")
    place = placed(seed, stream, offset)
    message = Beta(*what, *place, out, a=plain(a), b=plain(b))
    return device_first(device).ask(message)


def poisson(
    device: Device,
    mean: Scalar,
    shape: Extents | None = None,
    dtype: object = None,
    *,
    seed: SupportsIndex | None = None,
    stream: SupportsIndex = 0,
    offset: SupportsIndex = 0,
    out: AccelRef | None = None,
) -> AccelRef:
    """Draw from the Poisson distribution, as `Poisson` says; int64 unless told otherwise.

    Raises:
        InvalidArgument: something does not fit.
    """
    what = described(shape, dtype, out, "int64")
    place = placed(seed, stream, offset)
    message = Poisson(*what, *place, out, mean=plain(mean))
    return device_first(device).ask(message)


def binomial(
    device: Device,
    n: SupportsIndex,
    p: Scalar,
    shape: Extents | None = None,
    dtype: object = None,
    *,
    seed: SupportsIndex | None = None,
    stream: SupportsIndex = 0,
    offset: SupportsIndex = 0,
    out: AccelRef | None = None,
) -> AccelRef:
    """Draw from the binomial distribution, as `Binomial` says; int64 unless told otherwise.

    Raises:
        InvalidArgument: something does not fit.
    """
    what = described(shape, dtype, out, "int64")
    place = placed(seed, stream, offset)
    message = Binomial(*what, *place, out, n=whole(n), p=plain(p))
    return device_first(device).ask(message)
