"""The answer of a message with several results, which answers each of their handles."""

from collections.abc import Callable, Iterator
from sys import getrefcount
from types import SimpleNamespace
from typing import Any

from accel_lab.actor.reply import PENDING, Pump, Reply
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.results import Results
from accel_lab.errors import AccelError


class ResultsReply(Reply[Any]):
    """What a request with several results is known by until it is answered.

    Attributes:
        handles: the NamedTuple that the caller has; None for a result that is not asked for.
        id: of the first of them on the wire, made or not; 0 where they overwrite others.

    Parameters:
        outs: the buffers that they overwrite, whose shapes may come to be known meanwhile.
    """

    __slots__ = ("_outs", "handles", "id")

    def __init__(
        self,
        pump: Pump,
        origin: object,
        results: Results,
        handles: tuple[Ref[Any] | None, ...],
        id_: int,
        outs: tuple[AccelRef | None, ...] = (),
    ) -> None:
        super().__init__(pump, origin)
        self.handles = results.kind(*handles)
        self.id = id_
        self._outs = outs

    @property
    def refs(self) -> Iterator[Ref[Any]]:
        """The handles that there are."""
        return (ref for ref in self.handles if ref is not None)

    def answers(self, reply: Reply[Any]) -> bool:
        """Whether a handle waits for this answer."""
        return any(ref is reply for ref in self.handles)

    def resolve(self, value: Any = None) -> None:
        """Complete each of them."""
        for ref, out in zip(self.handles, self._outs, strict=False):
            if ref is not None and out is not None and not ref.known and out.known:
                ref.learn(out.shape, out.dtype)
        self._outs = ()
        for ref in self.refs:
            ref.resolve()
        super().resolve(value)

    def reject(self, error: AccelError) -> None:
        """Fail each of them with one error; it is told of once, and if nobody waits for any."""
        waited = [ref.fail(error) for ref in self.refs]
        if self._state == PENDING:
            waited.append(self.fail(error))
            if not any(waited) and self._pump is not None:
                self._pump.unclaimed(self)

    def take_back(self, error: AccelError) -> Callable[[], object]:
        """Fail, and hold the memory until the request that writes it is over."""
        held = [ref.take_back(error) for ref in self.refs]
        self.reject(error)

        def let_go() -> None:
            for over in held:
                over()

        return let_go

    def let_go(self) -> bool:
        """Give up those that nobody holds; return whether somebody holds one."""
        if _holders(self) > _OF_NO_CALLER:
            return True
        held = False
        for at in range(len(self.handles)):
            if self.handles[at] is None:
                continue
            if _references(self.handles, at) <= _OF_NOBODY:
                self.handles[at].let_go()
            else:
                held = True
        return held


# How many references are our own depends on the interpreter.


def _holders(reply: Any) -> int:
    return getrefcount(reply.handles)


def _references(handles: tuple[Any, ...], at: int) -> int:
    return getrefcount(handles[at])


_OF_NO_CALLER = _holders(SimpleNamespace(handles=(Reply(),)))
_OF_NOBODY = _references((Reply(),), 0)
