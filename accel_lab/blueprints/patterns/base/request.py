"""One request to a pattern: the message, what the pattern holds of it, and its stream of parts."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal

from accel_lab.actor.event_loop import Timer
from accel_lab.actor.letter import Promise
from accel_lab.actor.message import Message
from accel_lab.actor.reply import Reply

State = Literal["new", "line", "queued", "running", "over"]


class Infer(Message[Any], frozen=True):
    """Answer a value.

    Attributes:
        priority: what has more of it begins first.
        timeout_s: how long it may take, from when the pattern takes it in; None as long as it does.
        stream: gets parts of the answer as they come.
    """

    value: Any
    priority: int = 0
    timeout_s: float | None = None
    stream: "Stream | None" = None


class Stream:
    """The parts of one answer as they come: `async for part in stream`, or `for`.

    Attributes:
        reply: the whole answer. Its failure is raised where the next part is waited for.
    """

    def __init__(self) -> None:
        self._ahead: Reply[Any] = Reply()  # of a part and what follows it, or None at the end
        self._last = self._ahead
        self.reply: Reply[Any] = Reply()

    @property
    def ahead(self) -> Reply[Any]:
        """The next part and the reply of what follows it, or None at the end."""
        return self._ahead

    def follow(self, reply: Reply[Any]) -> None:
        """End when a reply is there, as it does."""
        self.reply = reply
        reply.add_waiter(self._end)

    def push(self, part: Any) -> None:
        """Hand on a part; on the event loop alone."""
        last, self._last = self._last, Reply()
        last.resolve((part, self._last))

    def cancel(self) -> None:
        """Take the request back."""
        self.reply.cancel()

    def _end(self) -> None:
        error = self.reply.error
        if error is None:
            self._last.resolve(None)
        else:
            self._last.fail(error)

    def __iter__(self) -> Iterator[Any]:
        """Yield each part, and block for it."""
        while (found := self._ahead.result()) is not None:
            part, self._ahead = found
            yield part

    async def __aiter__(self) -> AsyncIterator[Any]:
        """Yield each part, awaited."""
        while (found := await self._ahead) is not None:
            part, self._ahead = found
            yield part


class Relay:
    """Hands on the parts of a stream, and then all of them or its failure; on one event loop.

    Parameters:
        soon: has a function called on the event loop, in a turn of its own; any thread.
        part: gets each part.
        over: gets the list of all and None, or None and the failure.
    """

    def __init__(
        self,
        stream: Stream,
        soon: Callable[[Callable[[], object]], object],
        part: Callable[[Any], object],
        over: Callable[[list[Any] | None, BaseException | None], object],
    ) -> None:
        self._ahead: Reply[Any] | None = stream.ahead
        self._soon, self._part, self._over = soon, part, over
        self._awaited: Reply[Any] | None = None
        self._parts: list[Any] = []
        self._go_on_soon()

    def _go_on(self) -> None:
        while (ahead := self._ahead) is not None and ahead.done:
            if ahead.error is not None:
                self._ahead = None
                self._over(None, ahead.error.take())
            elif (found := ahead.result(0.0)) is None:
                self._ahead = None
                self._over(self._parts, None)
            else:
                part, self._ahead = found
                self._parts.append(part)
                self._part(part)
        if ahead is not None and self._awaited is not ahead:  # a waiter may be called twice
            self._awaited = ahead
            ahead.add_waiter(self._go_on_soon)

    def _go_on_soon(self) -> None:
        self._soon(self._go_on)


class Entry:
    """A request that a pattern holds.

    Attributes:
        number: of the request, from 1.
        at: when it came, on the event loop's clock.
        note: what its kind of pattern knows of it.
    """

    __slots__ = ("ask", "at", "note", "number", "promise", "room", "state", "timer")

    def __init__(self, number: int, ask: Infer, at: float, promise: Promise[Any]) -> None:
        self.number, self.ask, self.at, self.promise = number, ask, at, promise
        self.state: State = "new"
        self.timer: Timer | None = None
        self.room: Timer | None = None
        self.note: Any = None

    @property
    def is_over(self) -> bool:
        """Whether it has been answered."""
        return self.state == "over"
