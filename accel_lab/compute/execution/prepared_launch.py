"""A launch that is prepared in advance, for a message that is sent repeatedly.

The first time a handler looks at everything; when the same bytes come again, all that is left is to
order the stream and to call what enqueues.
"""

from collections.abc import Callable, Mapping
from typing import Any

from accel_lab.compute.execution.stream import Storage, Stream
from accel_lab.compute.message.buffer import Ref


class Prepared:
    """A call that enqueues the same work on the same memory once more.

    It holds no array, so that what the notebook frees is given back.

    Parameters:
        call: enqueues on `stream` and returns at once; knows addresses, and nothing that keeps
            their memory.
        reads, writes: the buffers that it does so with.
        restarts: how often each library's actor was replaced; the call is `library`'s.
        changes: how often a buffer of the table, or any such actor, had gone by then.
        kind: what the message is.
    """

    __slots__ = (
        "_buffers",
        "_kind",
        "_library",
        "_memory",
        "_reads",
        "_restarts",
        "_started",
        "_writes",
        "call",
        "changes",
        "stream",
    )

    def __init__(
        self,
        call: Callable[[], object],
        stream: Stream,
        reads: tuple[Ref[Any], ...],
        writes: tuple[Ref[Any], ...],
        restarts: Mapping[str, int],
        library: str,
        changes: int,
        kind: type | str = "",
    ) -> None:
        self.call = call
        self.stream = stream
        self.changes = changes
        self._kind = kind
        self._restarts, self._library = restarts, library
        self._started = restarts[library]
        self._buffers: tuple[Any, ...] = (*reads, *writes)
        self._memory: list[Storage] = [buffer.storage for buffer in self._buffers]
        self._reads = self._memory[: len(reads)]
        self._writes = self._memory[len(reads) :]

    def holds(self, changes: int) -> bool:
        """Whether its actor and all its buffers are what they were; asked when any has gone."""
        if self._restarts[self._library] != self._started:
            return False
        for buffer, storage in zip(self._buffers, self._memory, strict=True):
            if buffer.storage is not storage:
                return False
        self.changes = changes
        return True

    def enqueue(self, seq: int) -> None:
        """Enqueue it as request `seq`; raises what the driver raises."""
        stream = self.stream
        stream.operations = operation = stream.operations + 1
        stream.seq, stream.kind = seq, self._kind
        for storage in self._reads:
            storage.used = seq
            if storage.writer is not stream:
                storage.read_on(stream)
        for storage in self._writes:
            storage.used = seq
            if storage.writer is stream and not storage.readers:  # nothing to wait for
                storage.write_operation = operation
                storage.write_seq, storage.write_kind = seq, self._kind
            else:
                storage.write_on(stream)
        self.call()
