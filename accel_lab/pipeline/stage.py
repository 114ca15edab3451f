"""One stage as its user described it, and which device an item of it goes to."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from accel_lab.actor.unawaited import name_of
from accel_lab.compute.device import Device
from accel_lab.compute.message.validation import require_word
from accel_lab.errors import InvalidArgument

Policy = Callable[[Sequence[Device], Any], Device]
"""Chooses a device for an item."""
OnError = Literal["raise", "skip"]
RETRIES = 2
"""How often an item is run again after faults: a fourth loss within a minute opens a circuit."""
NO_WORK = ("circuit open", "stopped")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What `Pipeline.stage` was given.

    Attributes:
        build: makes the function, given the device where there are devices; or None.
        capacity: how many items it holds at most: waiting, running, and done but not passed on.
        is_sink: whether what it returns is dropped, and it is not stopped while it runs.
    """

    name: str
    function: Callable[..., Any] | None = None
    build: Callable[..., Any] | None = None
    devices: tuple[Device, ...] = ()
    policy: Policy | None = None
    parallelism: int = 1
    capacity: int = 2
    ordered: bool = True
    retries: int = RETRIES
    on_error: OnError = "raise"
    writes_input: bool = False
    is_sink: bool = False


def stage_of(
    function: Callable[..., Any] | None,
    build: Callable[..., Any] | None,
    devices: Any,
    policy: Policy | None,
    parallelism: int | None,
    capacity: int | None,
    retries: int,
    on_error: OnError,
    *,
    name: str | None,
    number: int,
    ordered: bool,
    writes_input: bool,
) -> Stage:
    """Check what `Pipeline.stage` was given; its docstring says what each is.

    Raises:
        InvalidArgument: it does not fit.
    """
    if isinstance(function, type) and build is None:
        function, build = None, function
    if (function is None) == (build is None):
        raise InvalidArgument("a stage takes a function, or build=, what makes one: one of the two")
    called = function if build is None else build
    if not callable(called):
        raise InvalidArgument(f"a stage takes a function, and {called!r} is none")
    found = devices_of(devices)
    if policy is not None and not found:
        raise InvalidArgument("policy= chooses among devices=, and there are none")
    if parallelism is None:
        parallelism = max(1, 2 * len(found))
    require_count(parallelism, "parallelism", 1)
    if capacity is None:
        capacity = 2 * parallelism
    require_count(capacity, "capacity", parallelism)
    require_count(retries, "retries", 0)
    require_word(on_error, "on_error", get_args(OnError))
    own = name_of(called).rpartition(".")[2]
    return Stage(
        name=name or (f"stage {number}" if own == "<lambda>" else own),
        function=function,
        build=build,
        devices=found,
        policy=policy,
        parallelism=parallelism,
        capacity=capacity,
        ordered=ordered,
        retries=retries,
        on_error=on_error,
        writes_input=writes_input,
    )


def devices_of(given: Any) -> tuple[Device, ...]:
    """Return the devices of a system, of a sequence, or the one that this is; () for None.

    Raises:
        InvalidArgument: it is none of these.
    """
    if given is None:
        return ()
    if isinstance(given, Device):
        return (given,)
    found = getattr(given, "devices", given)
    devices = tuple(found) if isinstance(found, Iterable) else ()
    if not devices or not all(isinstance(one, Device) for one in devices):
        text = f"devices= takes a device, a list of them or a System, and not {given!r}"
        raise InvalidArgument(text)
    return devices


def require_count(value: object, name: str, least: int) -> None:
    """Refuse what is no whole number, or too small.

    Raises:
        InvalidArgument: it is.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidArgument(f"{name} is a whole number of at least {least}, not {value!r}")


class Functions:
    """What a stage calls: its function, or what `build` made for each device."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._built: dict[Device | None, Callable[..., Any]] = {}
        self._lock = threading.Lock()

    def call(self, device: Device | None, value: Any) -> Any:
        """Call it with an item; in a thread of the stage's."""
        stage = self.stage
        if stage.build is not None:
            return self._of(stage.build, device)(value)
        assert stage.function is not None  # one of the two is there
        return stage.function(value) if device is None else stage.function(device, value)

    def _of(self, build: Callable[..., Any], device: Device | None) -> Callable[..., Any]:
        with self._lock:
            built = self._built
            if device not in built:
                built[device] = build() if device is None else build(device)
            return built[device]

    def forget(self, *devices: Device | None) -> None:
        """Have it built again, for some devices or all: it may lie in a context that is lost."""
        built = list(self._built.items())  # without the lock, which is held while one is built
        self._built = {one: made for one, made in built if devices and one not in devices}


class Choice:
    """Spreads a stage's items over its devices: to the one with fewest of them, in turn."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._load = dict.fromkeys(stage.devices, 0)
        self._turn = 0

    def take(self, value: Any) -> Device | None:
        """Return a device for an item, which counts there until `give_back`; None if it has none.

        Raises:
            InvalidArgument: the user's policy chose what is not there.
        """
        devices = self._stage.devices
        if not devices:
            return None
        usable = [one for one in devices if one.state not in NO_WORK] or list(devices)
        if self._stage.policy is not None:
            chosen = self._stage.policy(usable, value)
            if not any(chosen is one for one in usable):
                text = f"the policy of stage {self._stage.name} chose {chosen!r} of {usable}"
                raise InvalidArgument(text)
        else:
            turn, count = self._turn, len(usable)
            order = [usable[(turn + n) % count] for n in range(count)]
            chosen = min(order, key=self._load.__getitem__)
            self._turn = usable.index(chosen) + 1
        self._load[chosen] += 1
        return chosen

    def give_back(self, device: Device | None) -> None:
        """Count one item less there."""
        if device is not None:
            self._load[device] -= 1

    @property
    def has_another(self) -> bool:
        """Whether a device of the stage's takes work."""
        return any(one.state not in NO_WORK for one in self._stage.devices)
