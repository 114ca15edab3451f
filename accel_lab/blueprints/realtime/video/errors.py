"""The error of a graph of effects."""

from accel_lab.errors import AccelError


class EffectCycle(AccelError, fields=("path",)):
    """Effects of a graph take their frames from each other, so it was refused.

    Attributes:
        path: the nodes of the cycle; the first one comes again at its end.
    """

    remedy = "Give one node of the path another source; Trail, Smooth and Delay look back in time."
    path: tuple[str, ...] = ()
