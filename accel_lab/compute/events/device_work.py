"""What a card did, by its own records: kernels, copies and fills, each with its message.

Where that is asked for there are also the calls of CUDA that the context made, and what recording
itself has cost.
"""

from typing import Literal

import msgspec

DeviceKind = Literal["kernel", "copy", "fill", "driver", "runtime", "overhead"]
"""The last three are on the host: calls of CUDA's two interfaces, and CUPTI's own work."""


class DeviceWork(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One kernel, copy, fill or call, with exact times.

    Attributes:
        seq: the number of the message for which it was enqueued; 0 where no message was: what a
            library does by itself, and copies that began before their message.
        name: of the kernel, as the compiler has it; of a copy which way it went, as `HTOD`; of a
            call the function's, as `cuLaunchKernel`; of overhead what it was for.
        kind: what it is.
        stream: the number that CUPTI has for the stream; of a call the thread's, of overhead 0.
        start, end: by the card's clock, in wall seconds; their difference is exact to the
            nanosecond, `duration_ns`.
        nbytes: that were copied or filled; None otherwise.
        grid, block: of a kernel; empty otherwise.
    """

    seq: int
    name: str
    kind: DeviceKind
    stream: int
    start: float
    end: float
    duration_ns: int
    nbytes: int | None = None
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
