"""Effects on frames: filters of images, pointwise ones, mixtures, and those that look back."""

from typing import Any, Literal, NamedTuple, get_args

from accel_lab.blueprints.realtime.checks import require_count, require_number
from accel_lab.blueprints.realtime.image_filters import Filter, FilterKernels, weights_of
from accel_lab.blueprints.realtime.kernels import Kernels
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import array

Way = Literal["add", "multiply", "screen", "lighten", "darken", "difference"]
WAYS = ("adjust", "threshold", "blend", *get_args(Way), "mask", "trail")
"""In the order of effects.cu."""
LONGEST_DELAY = 1 << 10


class Adjust(NamedTuple):
    """Compute gain * frame + bias."""

    gain: float = 1.0
    bias: float = 0.0


class Threshold(NamedTuple):
    """Make 1 of what is at least `level`, and 0 of the rest."""

    level: float


class Blend(NamedTuple):
    """Mix two frames; `share` is that of the second one."""

    share: float = 0.5


class Merge(NamedTuple):
    """Put two frames together, value by value; "screen" is 1 - (1 - a) (1 - b)."""

    way: Way


class Mask(NamedTuple):
    """Of three frames, take the first where the third is 0, and the second where it is 1."""


class Trail(NamedTuple):
    """Have what was bright fade: the larger of the frame and `keep` times the last result."""

    keep: float = 0.9


class Smooth(NamedTuple):
    """Blend each frame into the last result; `share` is that of the new frame."""

    share: float = 0.2


class Delay(NamedTuple):
    """Show what came so many frames ago, and the first frame before that."""

    frames: int = 1


class Change(NamedTuple):
    """Take the difference from the frame before; of the first one it is 0."""


Effect = Filter | Adjust | Threshold | Blend | Merge | Mask | Trail | Smooth | Delay | Change
TEMPORAL = Trail | Smooth | Delay | Change
Past = tuple[AccelRef, ...]
"""What a temporal effect has of the frames before, the oldest first."""


def sources_of(effect: Effect) -> int:
    """Return how many frames an effect takes."""
    return 3 if isinstance(effect, Mask) else 2 if isinstance(effect, Blend | Merge) else 1


def require_effect(effect: Any) -> None:
    """Refuse what is no effect.

    Raises:
        InvalidArgument: it is none, or has a parameter that it cannot have.
    """
    if isinstance(effect, Filter):
        weights_of(effect)
    elif isinstance(effect, Adjust):
        require_number("Adjust: gain", effect.gain)
        require_number("Adjust: bias", effect.bias)
    elif isinstance(effect, Threshold):
        require_number("Threshold: level", effect.level)
    elif isinstance(effect, Blend | Smooth):
        require_number(f"{type(effect).__name__}: share", effect.share, low=0, high=1)
    elif isinstance(effect, Merge):
        if effect.way not in get_args(Way):
            several = ", ".join(get_args(Way))
            raise InvalidArgument(f"Merge: way must be one of {several}, not {effect.way!r}")
    elif isinstance(effect, Trail):
        require_number("Trail: keep", effect.keep, low=0, high=1)
    elif isinstance(effect, Delay):
        require_count("Delay: frames", effect.frames, high=LONGEST_DELAY)
    elif not isinstance(effect, Mask | Change):
        raise InvalidArgument(
            "an effect is a filter of images, an Adjust, Threshold, Blend, Merge, Mask, "
            f"Trail, Smooth, Delay or Change, not {effect!r}"
        )


class EffectKernels:
    """Runs single effects on one device."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.filters = FilterKernels(device)
        self.kernels = Kernels(device, "effects")

    def weights(self, effect: Effect) -> tuple[AccelRef, ...]:
        """Put on the device what an effect needs there."""
        return self.filters.weights(effect) if isinstance(effect, Filter) else ()

    def apply(
        self, effect: Effect, weights: tuple[AccelRef, ...], frames: list[AccelRef], past: Past
    ) -> tuple[AccelRef, Past]:
        """Send an effect; return its frame, and what it has of the past then. Does not block."""
        if isinstance(effect, TEMPORAL):
            return self._remembering(effect, frames[0], past)
        if isinstance(effect, Filter):
            made = self.filters.filtered(frames[0], effect, weights)
        elif isinstance(effect, Adjust):
            made = self._combined("adjust", *frames, p=effect.gain, q=effect.bias)
        elif isinstance(effect, Threshold):
            made = self._combined("threshold", *frames, p=effect.level)
        elif isinstance(effect, Blend):
            made = self._combined("blend", *frames, p=effect.share)
        else:
            made = self._combined(effect.way if isinstance(effect, Merge) else "mask", *frames)
        return made, ()

    def _remembering(
        self, effect: Trail | Smooth | Delay | Change, frame: AccelRef, past: Past
    ) -> tuple[AccelRef, Past]:
        if isinstance(effect, Delay):
            behind = (*past, frame)
            return behind[0], behind[-effect.frames :]
        if isinstance(effect, Change):
            return self._combined("difference", frame, past[0] if past else frame), (frame,)
        if not past:
            made = frame
        elif isinstance(effect, Trail):
            made = self._combined("trail", frame, past[0], p=effect.keep)
        else:
            made = self._combined("blend", past[0], frame, p=effect.share)
        return made, (made,)

    def _combined(self, way: str, *frames: AccelRef, p: float = 0.0, q: float = 0.0) -> AccelRef:
        first = frames[0]
        out = array.zeros(self.device, first.shape, "float32")
        pointers = (*frames, None, None)[:3]
        args = *pointers, first.size, WAYS.index(way), float(p), float(q), out
        self.kernels.launch("combine", first.size, *args)
        return out
