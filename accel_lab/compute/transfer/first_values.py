"""The first and the last values of a buffer, for whoever displays its handle.

To display something is no order to compute: what is not done, or on a device that is at work, is
not fetched, and it is said why. A few elements cross the wire, and nothing is recorded of that.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.events.tree import State
from accel_lab.compute.message.builtin import Run
from accel_lab.compute.user_code.call import pack_call
from accel_lab.errors import AccelError

if TYPE_CHECKING:
    from accel_lab.compute.message.buffer import AccelRef
    from accel_lab.compute.transfer.transfers import Transfers

WHOLE = 12
"""How many elements are shown in full."""
FIRST, LAST = 6, 3
"""How many are shown of more."""
DEADLINE_S = 0.25
"""How long a display waits for them."""

Lines = list[tuple[str, str]]


class Displaying(Protocol):
    """A device, as far as a display of what it holds is concerned."""

    name: str

    @property
    def state(self) -> State:
        """What it is doing."""

    @property
    def in_flight(self) -> int:
        """How many messages are sent and not answered."""


def first_values(ref: "AccelRef", device: Displaying, transfers: "Transfers") -> Lines:
    """Return the first and last values as (what, text), or why they were not fetched.

    Blocks a quarter of a second at most, and only where the device has nothing to do.
    """
    why = _why_not(ref, device)
    if why:
        return [("values", f"not fetched: {why}")]
    if not ref.size:
        return [("values", "none")]
    refs, blob = pack_call(ends_of, (ref, FIRST, LAST, WHOLE), {})
    call = Run(refs, blob, pure=False, writes=(), called="first values")
    try:
        reply = transfers.run(call, None, recorded=False)
        try:
            first, last = reply.result(DEADLINE_S)
        except BaseException:  # also an interrupt: nobody waits for them any more
            reply.cancel()
            raise
    except TimeoutError:
        return [("values", f"not fetched: {device.name} took more than {DEADLINE_S} s")]
    except AccelError as error:
        return [("values", f"not fetched: {type(error).__name__}: {error}")]
    return list(_told(ref, first, last))


def ends_of(array: Any, first: int, last: int, whole: int) -> tuple[bytes, bytes]:
    """Return the bytes of the first and the last elements in C order; in the context.

    Of an array of `whole` elements or fewer the first are all.
    """
    if array.size <= whole:
        return _bytes(array), b""
    if array.flags.c_contiguous:
        flat = array.reshape(-1)
        return _bytes(flat[:first]), _bytes(flat[-last:])
    places = [np.unravel_index(at, array.shape) for at in range(first)]
    ends = [np.unravel_index(array.size - at, array.shape) for at in range(last, 0, -1)]
    head, tail = (
        b"".join(_bytes(array[tuple(map(int, place))]) for place in some) for some in (places, ends)
    )
    return head, tail


def _bytes(part: Any) -> bytes:
    """Copy a part to the host; an array of a card has a `get` for that."""
    return np.asarray(part.get() if hasattr(part, "get") else part).tobytes()


def _why_not(ref: "AccelRef", device: Displaying) -> str:
    if device.state != "running":
        return f"{device.name} is {device.state}"
    if not ref.done:
        return "it is not done yet"
    if device.in_flight:
        return f"{device.name} is busy"
    return ""


def _told(ref: "AccelRef", first: bytes, last: bytes) -> Iterator[tuple[str, str]]:
    dtype = numpy_dtype(str(ref.dtype))
    values = np.frombuffer(first, dtype)
    if not last:
        yield "values", _written(values.reshape(ref.shape))
        return
    yield "first values", _written(values)
    yield "last values", _written(np.frombuffer(last, dtype))


def _written(values: Any) -> str:
    """Write a few values on one line."""
    text = np.array2string(
        values, separator=", ", max_line_width=1 << 16, formatter={"all": _number}
    )
    return " ".join(text.split())


def _number(value: Any) -> str:
    """Write one value; of more digits eight are enough to know it by."""
    if isinstance(value, np.bool_ | np.integer):
        return str(value)
    return f"{complex(value) if np.iscomplexobj(value) else float(value):.8g}"
