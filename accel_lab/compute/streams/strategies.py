"""How a context waits for the end of work that takes long. What is computed is always the same."""

from typing import Any, TypeAlias

import msgspec

from accel_lab.compute.message.validation import require_seconds
from accel_lab.errors import InvalidArgument

LOOK_S = 0.0002
WATCHDOG_S = 0.02


class Sync(msgspec.Struct, frozen=True, tag="sync"):
    """A thread waits in the driver (`cudaEventSynchronize`), which may take a core meanwhile.

    Attributes:
        look_s: for how long the context first looks at the streams itself; 0 for not at all.
    """

    look_s: float = LOOK_S

    def __post_init__(self) -> None:
        """Refuse what is no time.

        Raises:
            InvalidArgument: it is none.
        """
        _require_look(self)


class Polled(msgspec.Struct, frozen=True, tag="polled"):
    """A thread asks again and again (`cudaEventQuery`) and sleeps between: what is done by default.

    Attributes:
        look_s: for how long the context first looks at the streams itself; 0 for not at all.
    """

    look_s: float = LOOK_S

    def __post_init__(self) -> None:
        """Refuse what is no time.

        Raises:
            InvalidArgument: it is none.
        """
        _require_look(self)


class HostFn(msgspec.Struct, frozen=True, tag="host function"):
    """CUDA wakes a thread by a function that it calls behind the work (`cuLaunchHostFunc`).

    CUDA does not call it after an error, so the thread asks for the event from time to time.

    Attributes:
        look_s: for how long the context first looks at the streams itself; 0 for not at all.
        watchdog_s: after how long without a call the thread asks.
    """

    look_s: float = LOOK_S
    watchdog_s: float = WATCHDOG_S

    def __post_init__(self) -> None:
        """Refuse what is no time.

        Raises:
            InvalidArgument: it is none.
        """
        _require_look(self)
        if require_seconds(self.watchdog_s, "HostFn: watchdog_s") > 1.0:
            text = f"HostFn: watchdog_s is 1 s at most, not {self.watchdog_s}: a loss waits for it"
            raise InvalidArgument(text)


Strategy: TypeAlias = Sync | Polled | HostFn


def require_strategy(completion: Any) -> Strategy:
    """Return a strategy; None is `Polled()`.

    Raises:
        InvalidArgument: it is something else.
    """
    if completion is None:
        return Polled()
    if not isinstance(completion, Strategy):
        text = "completion is Sync(), Polled() or HostFn() of accel_lab.streams, not"
        raise InvalidArgument(f"{text} {completion!r}")
    return completion


def _require_look(strategy: Any) -> None:
    look_s, what = strategy.look_s, f"{type(strategy).__name__}: look_s"
    if isinstance(look_s, bool) or look_s != 0:
        require_seconds(look_s, what)
        if look_s > 1.0:
            raise InvalidArgument(f"{what} is 1 s at most, not {look_s}: it takes a core")
