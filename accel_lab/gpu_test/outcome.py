"""What became of one check on one device."""

from typing import Literal

import msgspec

State = Literal["right", "wrong", "failed"]


class Wrong(Exception):
    """What came back is not what it must be; the text says how."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A check, and what became of it.

    Attributes:
        name: of the operation, as `blas.Gemm`, or of what else was tried, as `kill`.
        dtype: in which it was computed; empty where that has no meaning.
        device: where it ran; of a message to several devices all of them.
        state: `right`; `wrong` when something else came back; `failed` when an error did.
        said: what was wrong, or how the error began; empty when right.
        seconds: how long it took, the first use of its library included.
    """

    name: str
    dtype: str = ""
    device: str
    state: State
    said: str = ""
    seconds: float
