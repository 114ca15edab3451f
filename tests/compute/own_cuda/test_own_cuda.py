"""Arrays that CUDA of the notebook's own process holds: read through the driver that is loaded."""

from pathlib import Path

from accel_lab.compute.machine.loaded_driver import loaded_driver, open_contexts
from tests.compute.own_cuda.conftest import Reading, run


def test_a_process_that_has_loaded_no_driver_holds_no_context() -> None:
    assert loaded_driver() is None
    assert open_contexts() == ()


def test_an_array_on_a_card_is_put_by_the_host(driver: Path) -> None:
    """Of any size; it is waited for on its own stream, or on all."""
    run(
        driver,
        """
with System("host") as lab:
    gpu = lab.devices[0]
    for array in (values, values[:3, :5].copy(), np.float32([]), np.array(2.5), values > 0):
        ref = gpu.put(Card(array))
        assert (ref.shape, ref.dtype) == (array.shape, str(array.dtype))
        assert np.array_equal(ref.get(timeout_s=60), array)
    large = gpu.put(Card(values, stream=3))
    assert told("waits") == 4 + 30, told("waits")  # an empty one is nowhere
    assert told("depth") == 0
    source = values.copy()
    ref = gpu.put(Card(source))
    source[:] = 0
    assert np.array_equal(ref.get(timeout_s=60), values)
""",
    )


def test_what_cannot_be_put_says_why(driver: Path) -> None:
    run(
        driver,
        """
with System("host") as lab:
    gpu = lab.devices[0]
    assert "mask" in refused(Card(values, mask=Card(values > 0)))
    assert "C-contiguous" in refused(Card(values.T))
    tell("broken", 700)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in refused(Card(values))
    assert told("depth") == 0
    tell("broken", 0)
    assert gpu.put(Card(values)).get(timeout_s=60)[0, 0] == values[0, 0]
""",
    )


def test_memory_of_a_pool_is_not_exported_but_read(driver: Path) -> None:
    run(
        driver,
        """
found, stream = device_array(Card(values))
assert stream is None
assert found.settle(stream) is None
handle, offset = found.settle(stream, share=True)
assert (handle, offset) == (b"\\7" * 64, 256)
assert found.tenure() is None
tell("shareable", 0)
assert found.settle(stream, share=True) is None
with System("host") as lab:
    assert np.array_equal(lab.devices[0].put(Card(values)).get(timeout_s=60), values)
""",
    )


def test_an_open_context_is_told_by_check_and_the_doctor(driver: Path) -> None:
    run(
        driver,
        """
from accel_lab.doctor import examine
with System("host") as lab, warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    lab.check()
    assert not caught and open_contexts() == ()
    assert "own CUDA context" not in str(examine())
    tell("active", 2)
    lab.check()
    assert "context of its own on card 1" in str(caught[0].message)
    assert "own CUDA context" in str(examine())
""",
    )


def test_an_allocation_is_exported_once(reading: Reading) -> None:
    """As long as the context to which it belongs is current; another at its place is another."""
    reading(
        """
x = fresh(3)
part = OfMemory(x.data.mem, slice(500, None))

def exported(array):
    before = told("exports")
    found, _ = device_array(array)
    handle, offset = found.settle(4, share=True)
    assert told("depth") == 0
    return int.from_bytes(handle[:8], "little"), offset, told("exports") - before

assert exported(x) == (1, 0, 1)
assert exported(x) == (1, 0, 1)  # no context is current here: it may be of another card
tell("current", 1)
assert exported(x) == (1, 0, 0)
assert exported(part) == (1, 2000, 0)
assert told("waits") == 160
tell("idle", 1)
assert exported(x) == (1, 0, 0)
assert told("waits") == 160
address = x.array.__array_interface__["data"][0]
driver.own(*map(ctypes.c_uint64, (address, x.array.nbytes, 77)))
assert exported(x) == (77, 0, 1)
tell("idle", 0)
tell("broken", 700)
try:
    exported(x)
except InvalidArgument as error:
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in str(error)
else:
    raise AssertionError
"""
    )
