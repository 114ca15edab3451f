"""Arrays on a card that one process offers and another opens, by the driver that is loaded."""

from pathlib import Path

import pytest

from accel_lab.compute.shared.shared_file import SharedFile
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.memory.exported import Exported
from tests.compute.own_cuda.conftest import run

OPENED = """
import time
from accel_lab import memory
from accel_lab.compute.shared.lingering import OFFERED
from accel_lab.errors import OwnerGone

def own(array, number):
    address = array.__array_interface__["data"][0]
    driver.own(*map(ctypes.c_uint64, (address, array.nbytes, number)))

def seen(opened):
    told = opened.__cuda_array_interface__
    assert told["version"] == 3 and told["strides"] is None
    pointer, kind = told["data"][0], np.dtype(told["typestr"])
    nbytes = int(np.prod(told["shape"])) * kind.itemsize
    raw = ctypes.string_at(pointer, nbytes)
    return np.frombuffer(raw, kind).reshape(told["shape"])

own(values, 5)
"""


def test_it_is_opened_where_it_lies_and_closed_with_the_last_of_it(driver: Path) -> None:
    run(
        driver,
        OPENED
        + """
offer = memory.offer(Card(values[100:300], stream=3))
assert told("waits") == 30, "its stream was waited for"
exported = offer.exported
assert (exported.shape, exported.dtype, exported.offset) == ((200, 1000), "float64", 800_000)
assert exported.card == bytes([1] * 16)
first, second = exported.open(), exported.open()
assert (told("opened"), told("depth"), told("held")) == (2, 0, 2)
assert np.array_equal(seen(first), values[100:300])
values[100] = 7
assert (seen(first)[0] == 7).all()
offer.close()
assert OFFERED.nbytes == values[100:300].nbytes
waits = told("waits")
del first
assert told("waits") == waits + 1, "what uses it here is done before it is closed"
assert (told("opened"), told("held")) == (1, 1)
time.sleep(0.5)
assert OFFERED.nbytes == values[100:300].nbytes
del second
assert (told("opened"), told("held"), told("depth")) == (0, 0, 0)
until = time.monotonic() + 60
while OFFERED.nbytes and time.monotonic() < until:
    time.sleep(0.01)
assert not OFFERED.nbytes, "it is swept by itself"
try:
    exported.open()
    raise SystemExit("it was opened")
except OwnerGone:
    pass
""",
    )


def test_what_cannot_be_opened_or_offered_says_why_and_leaves_nothing_open(driver: Path) -> None:
    run(
        driver,
        OPENED
        + """
def refused(call):
    try:
        call()
    except InvalidArgument as error:
        return str(error)

offer = memory.offer(Card(values))
tell("lost_card", 1)
assert "which this process does not see; it sees 2 of others" in refused(offer.exported.open)
tell("lost_card", 0)
tell("broken", 700)
assert "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in refused(offer.exported.open)
tell("broken", 0)
assert "import cupy before" in refused(lambda: offer.exported.open().array)
opened = told("opened")
for change in ({"offset": 8}, {"offset": -8}, {"shape": (1 << 22,)}, {"shape": (-1,)}):
    assert refused(offer.exported._replace(**change).open), change
assert (told("held"), told("depth"), told("opened")) == (0, 0, opened)
tell("shareable", 0)
assert "shares nothing" in refused(lambda: memory.offer(Card(values.copy())))
assert "empty" in refused(lambda: memory.offer(Card(values[:0])))
with System("host") as lab:
    reading = memory.read(lab.devices[0], offer.exported)
    assert "is memory of a card" in refused(lambda: reading.result(60))
""",
    )


def test_a_process_that_has_loaded_no_driver_opens_none() -> None:
    file = SharedFile(1)
    exported = Exported(file.place, bytes(64), bytes(16), 0, (3,), "float32")
    with pytest.raises(InvalidArgument, match="has loaded no CUDA driver"):
        exported.open()
    assert file.close()
