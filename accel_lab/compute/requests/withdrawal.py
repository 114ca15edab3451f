"""What stands for a request that was cancelled while its context had it.

Whoever asked has the answer, `Cancelled`. The context may not know yet, may be at it, or may have
done it: until it says so, what the request reads and writes must stay.
"""

from collections.abc import Callable
from typing import Any

from accel_lab.actor.reply import Reply
from accel_lab.compute.groups.part import Part
from accel_lab.errors import AccelError


class Withdrawn(Reply[Any]):
    """Takes the answer of a request that nobody waits for any more.

    Attributes:
        part: what it stands for, if that is a part of a message to several devices: whose outcome
            is known everywhere, and recorded.

    `hold` and the answer may come at the same time from two threads.
    """

    __slots__ = ("_held", "part")

    def __init__(self, origin: Any, library: str) -> None:
        super().__init__(None, origin)
        self.library = library
        self._held: list[Callable[[], object]] = []
        self.part: Part | None = None

    def hold(self, over: Callable[[], object]) -> None:
        """Call `over` when the context is done with the request; at once if it is."""
        self._held.append(over)
        if self.done:
            self._let_go()

    def resolve(self, value: Any = None) -> None:
        """The context is done with it, whatever came of it."""
        super().resolve(value)
        self._let_go()

    def reject(self, error: AccelError) -> None:
        """The context is done with it, or gone."""
        del error
        self.resolve()

    def _let_go(self) -> None:
        try:
            over = self._held.pop()
        except IndexError:  # nothing yet, or the other thread was faster
            return
        over()
