"""A function as patterns call it: on which devices, how many at a time, and how often again."""

import copy
import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, overload

from accel_lab.actor.unawaited import require_plain
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from accel_lab.pipeline import stage as pipelines


class Stage:
    """A function of yours with what a pattern has to know; called itself it is the function.

    Attributes:
        plan: the same as a pipeline's stage has it.
        repeatable: whether a call may be run again after a fault.
        inline: whether it is called on the event loop, because it only sends and never waits.
    """

    def __init__(
        self,
        function: Callable[..., Any] | None = None,
        *,
        build: Callable[..., Any] | None = None,
        devices: Any = None,
        parallelism: int | None = None,
        retries: int = pipelines.RETRIES,
        repeatable: bool = True,
        inline: bool = False,
        name: str | None = None,
    ) -> None:
        for one in (function, build):
            if one is not None and callable(one):
                require_plain(one, "a stage", "write def, and return replies")
        self.plan = pipelines.stage_of(
            function,
            build,
            devices,
            None,
            parallelism,
            None,
            retries if repeatable else 0,
            "raise",
            name=name,
            number=0,
            ordered=True,
            writes_input=False,
        )
        self.repeatable = repeatable
        self.inline = inline
        functools.update_wrapper(self, function or build or Stage, updated=())

    @property
    def name(self) -> str:
        """What it is called in the tree, in statistics and in errors."""
        return self.plan.name

    @property
    def devices(self) -> tuple[Device, ...]:
        """Where it runs; none for the notebook's process."""
        return self.plan.devices

    def placed(self, device: Device | None, *, parallelism: int, name: str) -> "Stage":
        """Return the same on one device of its own, whose calls are not run again by themselves."""
        other = copy.copy(self)
        where = self.devices if device is None else (device,)
        other.plan = replace(
            self.plan,
            devices=where,
            parallelism=parallelism,
            capacity=2 * parallelism,
            retries=0,
            name=name,
        )
        return other

    def with_parallelism(self, parallelism: int) -> "Stage":
        """Return the same with so many calls at a time."""
        other = copy.copy(self)
        plan = self.plan
        other.plan = replace(plan, parallelism=parallelism, capacity=2 * parallelism)
        return other

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the function here and now, as if it were no stage.

        Raises:
            InvalidArgument: there is none, but only what builds one.
        """
        if self.plan.function is None:
            raise InvalidArgument(f"stage {self.name} has no function before a pattern builds it")
        return self.plan.function(*args, **options)

    def __repr__(self) -> str:
        where = ", ".join(one.name for one in self.devices) or "the notebook's process"
        return f"<Stage {self.name} on {where}, {self.plan.parallelism} at a time>"


@overload
def stage(function: Callable[..., Any], /) -> Stage: ...
@overload
def stage(
    function: None = ...,
    /,
    *,
    build: Callable[..., Any] | None = ...,
    devices: Any = ...,
    parallelism: int | None = ...,
    retries: int = ...,
    repeatable: bool = ...,
    inline: bool = ...,
    name: str | None = ...,
) -> Callable[[Callable[..., Any]], Stage]: ...


def stage(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a stage: `@stage` alone, or `@stage(devices=lab)` with options.

    With devices it is called with `(device, value)`, else with `(value)`, in a thread. What it
    returns as replies is waited for, and arrays that it leaves on a device are fetched. On a class,
    `@stage(devices=lab)` makes one object for each device, and calls that with `(value)`: a model.

    Parameters:
        devices: a device, a list of devices, or a System for all of its devices.
        parallelism: how many calls are under way at a time; two for each device when not given,
            and one without devices. A device's function is called by one thread at a time.
        retries: how often a call is run again after a fault (a context was lost).
        repeatable: whether it may be; False for a function that must not run twice.
        inline: call it on the event loop; for what only sends, as another pattern's `ask`, or its
            `stream`, whose parts are told as they come.
        name: what it is called; as the function when not given.
    """
    if function is not None:
        return Stage(function, **options)
    return functools.partial(Stage, **options)


def as_stage(what: Any) -> Stage:
    """Return a stage as it is, and a function, or a pattern, as a stage.

    Raises:
        InvalidArgument: it is none of these.
    """
    if isinstance(what, Stage):
        return what
    ask = getattr(what, "ask", None)
    if ask is not None and hasattr(what, "statistics"):
        return Stage(ask, inline=True, parallelism=1024, name=what.name)
    return Stage(what)
