"""What a buffer holds, in 128 bits: for comparing results without fetching them."""

import pickle
from typing import Any, ClassVar

import numpy as np

from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.lineage.content_store import key_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation
from accel_lab.compute.user_code.call import answer_parts
from accel_lab.compute.wire.codec import Report

Digested = tuple[str, tuple[int, ...], str, bytes | None]


class Digest(Operation[Any], frozen=True, array_like=True, eq=False, tag=9):
    """Tell the digest of `x`: BLAKE2b, 128 bits, of its bytes in C order, in hexadecimal.

    The answer is (digest, shape, dtype, bytes), the bytes only when `values` asks for them.
    """

    library: ClassVar[str] = "digest"
    x: AccelRef
    values: bool = False


class DigestActor(LibraryActor):
    """Reads buffers back and digests them, on a stream of its own."""

    library = "digest"
    leads_out = True

    @handles(Digest)
    def digest(self, m: Digest, launch: Launch) -> None:
        """Copy to the host; the digest is worked out when the copy is there."""
        x = launch.read(m.x)
        target = np.empty(m.x.nbytes, np.uint8)
        self.context.backend.download(x, target)
        shape, dtype, values = m.x.shape, m.x.dtype, m.values

        def finish() -> list[Report]:
            found = key_of(target.data), shape, dtype, target.tobytes() if values else None
            return answer_parts(launch.seq, pickle.dumps(found))

        launch.finish = finish
