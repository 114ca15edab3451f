"""The notebook's side of a cache of keys and values."""

from collections.abc import Sequence
from typing import NamedTuple

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.handle import Handle
from accel_lab.libraries.attention.dense import Attended
from accel_lab.libraries.attention.pages import (
    KVPages,
    cache_append,
    cache_attend,
    cache_evict,
    cache_fork,
    cache_statistics,
    make_cache,
)
from accel_lab.libraries.authoring.operand import Scalar


class PageCounts(NamedTuple):
    """What a cache has.

    Attributes:
        pages: all of them.
        free: those that nothing is in.
        shared: those that several sequences have.
        sequences: how many there are.
        tokens: in all sequences; one in a shared page counts for each.
    """

    pages: int
    free: int
    shared: int
    sequences: int
    tokens: int


class KVCache:
    """Keys and values of sequences in pages on a device: append, attend, fork, evict.

    Sequences are numbered as you like; one begins with its first token. What it holds is rebuilt
    after a fault by its messages, or of `checkpoint()`. None of the methods waits for the device,
    but `statistics`.

    Parameters:
        heads: of keys and values.
        width: features of each.
        pages: how many there are; their memory is taken at once.
        page_size: tokens of a page.

    Attributes:
        handle: what the device keeps.

    Raises:
        InvalidArgument: no device, or an extent that is none.
    """

    def __init__(
        self,
        device: Device,
        *,
        heads: int,
        width: int,
        pages: int,
        page_size: int = 16,
        dtype: object = "float32",
    ) -> None:
        self.heads, self.width = heads, width
        self.handle: Handle[KVPages] = make_cache(
            device, heads, width, pages, page_size=page_size, dtype=dtype
        )

    def append(self, k: AccelRef, v: AccelRef, sequences: int | Sequence[int] = 0) -> Reply[None]:
        """Append tokens, (sequences, heads, tokens, features) of each, as `CacheAppend`.

        Raises:
            InvalidArgument: they do not fit to each other, or to the sequences.
        """
        return cache_append(self.handle, k, v, sequences)

    def attend(
        self,
        q: AccelRef,
        sequences: int | Sequence[int] = 0,
        *,
        sink: AccelRef | None = None,
        scale: Scalar | None = None,
        window: int = 0,
        alibi: bool = False,
        lse: bool = False,
    ) -> Attended:
        """Return the attention of the last tokens of sequences to all of theirs, as `CacheAttend`.

        Raises:
            InvalidArgument: something does not fit.
        """
        return cache_attend(
            self.handle,
            q,
            sequences,
            sink,
            scale=scale,
            window=window,
            alibi=alibi,
            lse=lse,
        )

    def fork(self, of: int, to: int | Sequence[int]) -> Reply[None]:
        """Begin sequences with all tokens of another one; the pages are shared, as `CacheFork`.

        Raises:
            InvalidArgument: these are no numbers of sequences.
        """
        return cache_fork(self.handle, of, to)

    def evict(self, sequences: int | Sequence[int], *, keep: int = 0) -> Reply[None]:
        """Free the pages of sequences, but for those of their last tokens, as `CacheEvict`.

        Raises:
            InvalidArgument: these are no numbers of sequences, or of tokens.
        """
        return cache_evict(self.handle, sequences, keep=keep)

    def statistics(self, *, timeout_s: float = 60.0) -> PageCounts:
        """Count pages, sequences and tokens, after all that was sent before; waits.

        Raises:
            AccelTimeout: it takes longer.
        """
        counts = cache_statistics(self.handle).get(timeout_s=timeout_s)
        return PageCounts(*map(int, counts))

    def checkpoint(self) -> Reply[None]:
        """Keep a copy on the host, so that after a fault no message before is run again for it.

        Raises:
            InvalidArgument: the system does not make buffers again (`recover="stale"`).
        """
        return self.handle.device.checkpoint(self.handle)

    def free(self) -> None:
        """Give the memory of all pages back; does not block."""
        self.handle.free()

    def __repr__(self) -> str:
        return f"<KVCache of {self.heads} heads of {self.width} features, {self.handle!r}>"
