"""What two contexts do for one copy from the memory of one card to another's.

They agree in a block of the arena, `tail`: its first word says what there is, as behind what a
`Receive` copies; then stand the memory's handle and the offset in it, or why there is none; its
last two words say that the buffer need not be kept, and whether the other one has it open.
"""

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from accel_lab.compute.execution.launch import Launch
from accel_lab.compute.message.builtin import (
    FAILED,
    LET_GO,
    OFFERED,
    OFFSET_BYTES,
    OPEN,
    TEXT_BYTES,
    WORD,
)
from accel_lab.errors import DependencyFailed, InvalidArgument

HANDLE_BYTES = 64
CANNOT = (
    "its memory cannot be read by another card: it is a view with gaps, or of an allocator that "
    "shares nothing. Copy it first, with array.copy(ref), or have copies staged: "
    "lab.topology.direct = False"
)
Submit = Callable[[Callable[[], object]], object]
"""Has something called on another thread."""


class _Copying:
    """Lives as long as a copy is under way."""


def offer(launch: Launch, array: Any, tail: Any) -> None:
    """Say where an array lies once it is made; it stays as it is until the copy is over.

    Raises:
        InvalidArgument: no other process can read it.
    """
    peers = launch.context.backend.peers
    place = None if peers is None else peers.export(array)
    if place is None:
        raise InvalidArgument(CANNOT)
    handle, offset = place
    words, native = tail.view(np.uint32), launch.stream.native
    made = native.record()
    told: list[bool] = []

    def is_over() -> bool:
        if not told:
            if not native.reached(made):
                return False
            said = handle + offset.to_bytes(OFFSET_BYTES, "little")
            tail[WORD : WORD + len(said)] = np.frombuffer(said, np.uint8)
            words[0] = OFFERED  # last: the other one may look at any moment
            told.append(True)
        return bool(words[LET_GO]) and not words[OPEN]

    launch.poll(is_over, lambda: None)


def fetch(launch: Launch, tail: Any, submit: Submit) -> None:
    """Copy what the other context offers, when it does; close its memory when that is done."""
    words = tail.view(np.uint32)

    def copy() -> None:
        peers = launch.context.backend.peers
        if peers is None:
            raise InvalidArgument("this device reads no memory of another process")
        array = launch.empty()
        said = tail[WORD : WORD + HANDLE_BYTES + OFFSET_BYTES].tobytes()
        handle, offset = said[:HANDLE_BYTES], int.from_bytes(said[HANDLE_BYTES:], "little")
        words[OPEN] = 1
        try:
            close = peers.copy_peer(array, handle, offset)
        except BaseException:
            words[OPEN] = 0
            raise
        copying = _Copying()
        # It goes when the stream is behind the copy; to close may wait for the card.
        closing = weakref.finalize(copying, submit, partial(_close, close, words))
        closing.atexit = False  # with the process goes what it has open
        launch.hold(copying)

    launch.poll(partial(_is_offered, tail, words), copy)


def _close(close: Callable[[], None], words: Any) -> None:
    try:
        close()
    finally:
        words[OPEN] = 0


def _is_offered(tail: Any, words: Any) -> bool:
    """Whether there is something to open.

    Raises:
        DependencyFailed: there never will be.
    """
    said = int(words[0])  # once: it changes meanwhile
    if said == FAILED:
        why = tail[WORD : WORD + TEXT_BYTES].tobytes().rstrip(b"\0").decode(errors="ignore")
        raise DependencyFailed(f"the buffer that was to be copied did not come: {why}")
    return said == OFFERED
