"""One operation that is measured again and again, and the call that does the same."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device

Send: TypeAlias = Callable[[], Reply[Any]]


class Case(NamedTuple):
    """An operation and the call that does the same.

    Attributes:
        name: of its rows, behind the group's.
        title: for people.
        what: the call of the baseline, without its file.
        arguments: what the call is prepared with.
        prepare: puts the operands on a device and returns what sends one message.
        pipelined, ask: the budgets of `cuda`; None where there is none.
        torch: PyTorch's call, with its file; empty where it has none.
    """

    name: str
    title: str
    what: str
    arguments: tuple[Any, ...]
    prepare: Callable[[Device], Send]
    pipelined: float | None = None
    ask: float | None = None
    torch: str = ""
