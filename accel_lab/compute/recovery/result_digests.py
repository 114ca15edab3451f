"""Record what messages made: a digest of each result, or its bytes as well."""

from typing import TYPE_CHECKING, Any

from accel_lab.actor.reply import Reply
from accel_lab.compute.actors.digest import Digest
from accel_lab.compute.lineage.markers import Result
from accel_lab.compute.lineage.recorder import Recorder
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.results_reply import ResultsReply
from accel_lab.errors import AccelError

if TYPE_CHECKING:
    from accel_lab.compute.requests.requests import Requests


class ResultDigests:
    """Has a digest worked out after each message that makes or changes a buffer.

    It reads every result back to the host: for finding a difference, not for speed.

    Parameters:
        values: record the bytes, too, as far as they may be kept.
    """

    def __init__(self, requests: "Requests", recorder: Recorder, *, values: bool) -> None:
        self._requests = requests
        self._recorder = recorder
        self._values = values

    def __call__(self, seq: int, reply: Reply[Any]) -> None:
        """Ask for the digest of what request `seq` made; does not block."""
        if isinstance(reply, ResultsReply):
            for ref in reply.refs:
                if isinstance(ref, AccelRef):  # what is no array has no digest
                    self._ask(ref, seq, ref.id)
        elif isinstance(reply, AccelRef):
            self._ask(reply, seq, 0)

    def _ask(self, ref: AccelRef, seq: int, id_: int) -> None:
        try:
            self._requests.outbox.send(
                Digest(ref, self._values),
                Digest.timeout_s,
                make=lambda _, __: _Seen(self._recorder, seq, id_),
                recorded=False,
            )
        except AccelError:  # it failed, or its context is lost: there is nothing to see
            return


class _Seen(Reply[Any]):
    """The answer that becomes a part of the record; nobody hears of its failure."""

    __slots__ = ("_id", "_recorder", "_seq")

    def __init__(self, recorder: Recorder, seq: int, id_: int) -> None:
        super().__init__(None, None)
        self._recorder = recorder
        self._seq = seq
        self._id = id_

    def resolve(self, value: Any = None) -> None:
        """Record it."""
        super().resolve(value)
        self._recorder.later(self._result)

    def _result(self) -> Result:
        digest, shape, dtype, data = self._value
        key = "" if data is None else self._recorder.contents.put(data)
        return Result(self._seq, digest, key or "", shape, dtype, self._id)
