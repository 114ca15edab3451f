"""Compression of what is sent, where that saves time: a sample and the stream itself decide.

Smooth data and zeros take a tenth of the bytes; random numbers take as many as before. A slow
connection gains by compression, and one that is faster than zlib loses.
"""

import time
import zlib

LEAST_BYTES = 512
SAMPLE_BYTES = 16 << 10
LEVEL = 1
FIRST_RATE = 20e6
"""Bytes a second that a connection is taken to carry, until it has carried some. Judged."""
QUICK = 50e6
"""At such a rate small parts are not compressed: the sample would be all of them. Judged."""
_WEIGHT = 0.3
_MEASURED_FROM = 128 << 10


class Squeezer:
    """Compresses parts of a stream, or does not.

    Attributes:
        rate: the bytes a second that the connection carries, as far as is known.
        given, taken: the bytes that there were, and what was left of them.
    """

    def __init__(self) -> None:
        self.rate = FIRST_RATE
        self.given = self.taken = 0

    def squeeze(self, data: bytes | memoryview) -> bytes | None:
        """Return the data in fewer bytes, or None where they are better sent as they are."""
        self.given += len(data)
        found = self._squeezed(data)
        self.taken += len(data) if found is None else len(found)
        return found

    def _squeezed(self, data: bytes | memoryview) -> bytes | None:
        if len(data) < LEAST_BYTES:
            return None
        if len(data) > 2 * SAMPLE_BYTES:
            middle = (len(data) - SAMPLE_BYTES) // 2
            sample = data[middle : middle + SAMPLE_BYTES]
            begun = time.perf_counter()
            share = len(zlib.compress(sample, LEVEL)) / SAMPLE_BYTES
            taken_s = time.perf_counter() - begun
            if not self.pays(share, taken_s / SAMPLE_BYTES):
                return None
        elif self.rate > QUICK:
            return None
        found = zlib.compress(data, LEVEL)
        return found if len(found) < len(data) else None

    def pays(self, share: float, seconds_a_byte: float) -> bool:
        """Whether it is sooner there in a `share` of its bytes, compression counted."""
        return seconds_a_byte + share / self.rate < 1 / self.rate

    def carried(self, nbytes: int, seconds: float) -> None:
        """Learn that so much was sent and received in so long, beyond the way there and back."""
        if nbytes >= _MEASURED_FROM and seconds > 0:
            self.rate += _WEIGHT * (nbytes / seconds - self.rate)


def unsqueezed(data: bytes) -> bytes:
    """Return what was compressed; raises ValueError where it was not."""
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise ValueError(str(error)) from error
