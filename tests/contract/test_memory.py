"""Memory beside the pool: it holds what any other does, grows where it is, says what it is."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab import System, array, blas, memory
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument, OutOfMemory
from accel_lab.libraries.memory.messages import ADVICE
from tests.faults.conftest import settle

WAIT_S = 60.0


@pytest.fixture
def small(backend: Any) -> Iterator[Device]:
    """A device that may take 64 MiB, and whose context may be lost."""
    name = backend.__name__.rpartition(".")[2]
    with System(name, devices=1, memory_bytes=64 << 20, max_restarts=20) as lab:
        yield lab.devices[0]


def told(ref: Any) -> memory.Description:
    return memory.describe(ref).result(WAIT_S)


# Managed memory.


@given(
    shape=st.sampled_from([(), (0, 3), (5,), (3, 1, 4)]),
    dtype=st.sampled_from(["int8", "float16", "complex128", "bfloat16"]),
)
def test_managed_memory_is_a_buffer_of_zeros(
    device: Device, shape: tuple[int, ...], dtype: str
) -> None:
    x = memory.managed(device, shape, dtype)
    assert (x.shape, x.dtype) == (shape, dtype)
    found = x.get(timeout_s=WAIT_S)
    assert found.shape == shape
    assert not found.astype("complex128").any()
    assert told(x).kind == "managed"


def test_it_computes_as_any_other_wherever_it_was_sent(device: Device) -> None:
    a = np.random.default_rng(0).standard_normal((24, 24))
    x = memory.managed(device, a.shape, "float64")
    x[:] = device.put(a)
    for to in ("host", "device", "device", "host"):
        assert memory.prefetch(x, to).result(WAIT_S) is None
        np.testing.assert_allclose(blas.gemm(x, x).get(timeout_s=WAIT_S), a @ a, rtol=1e-12)
        assert told(x).hints.prefetched == to
    np.testing.assert_array_equal(x[3:5].get(timeout_s=WAIT_S), a[3:5])


def test_advice_is_known_until_it_is_taken_back(device: Device) -> None:
    x = memory.managed(device, (64,))
    assert told(x).hints == memory.Hints()
    for advice, of in zip(ADVICE[::2], ("device", "host", "host"), strict=True):
        memory.advise(x, advice, of).result(WAIT_S)
    memory.advise(x[3:], "set_accessed_by").result(WAIT_S)  # it is about the whole
    hints = memory.Hints("", read_mostly=True, preferred="host", accessed_by=("device", "host"))
    assert told(x).hints == told(x[1:]).hints == hints
    memory.attach(x, "blas").result(WAIT_S)
    assert told(x).hints == hints._replace(attached="blas")
    np.testing.assert_array_equal(x.get(timeout_s=WAIT_S), np.zeros(64))
    memory.attach(x).result(WAIT_S)
    memory.advise(x, "unset_accessed_by", "host").result(WAIT_S)
    assert told(x).hints == memory.Hints(
        "", read_mostly=True, preferred="host", accessed_by=("device",)
    )
    memory.advise(x, "unset_accessed_by").result(WAIT_S)
    for advice in ADVICE[1:4:2]:
        memory.advise(x, advice).result(WAIT_S)
    assert told(x).hints == memory.Hints()


def test_what_is_no_place_advice_or_stream_is_refused_at_the_call(device: Device) -> None:
    x = memory.managed(device, (4,))
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: memory.prefetch(x, "disk"), "to is 'disk'"),
        (lambda: memory.advise(x, "set_fast"), "advice is 'set_fast'"),
        (lambda: memory.advise(x, "set_read_mostly", "all"), "of is 'all'"),
        (lambda: memory.attach(x, "cublas"), "stream is 'cublas'"),
        (lambda: memory.managed(device, (-1,)), "integers from 0"),
        (lambda: memory.managed(device, (2,), "text"), "text"),
    ]
    for call, found in calls:
        with pytest.raises(InvalidArgument, match=found):
            call()


def test_what_is_not_managed_takes_no_hints_and_stays_what_it_was(device: Device) -> None:
    pooled, grown = device.put(np.arange(3.0)), memory.growing(device, (3,), 9)
    for x, kind in ((pooled, "pool"), (grown, "growing")):
        for reply in (memory.prefetch(x), memory.attach(x), memory.advise(x, ADVICE[0])):
            with pytest.raises(InvalidArgument, match=rf"x is float\d\d\[3\] in {kind} memory"):
                reply.result(WAIT_S)
        assert told(x).kind == kind
    np.testing.assert_array_equal(pooled.get(timeout_s=WAIT_S), np.arange(3.0))


def test_more_than_there_is_free_is_refused_with_both_numbers(small: Device) -> None:
    x = memory.managed(small, (40 << 20,), "uint8")
    assert x.result(WAIT_S) is x
    makes: list[Callable[[], Any]] = [
        lambda: memory.managed(small, (32 << 20,), "uint8"),
        lambda: memory.growing(small, (32 << 20,), 1 << 30, "uint8"),
    ]
    for make in makes:
        with pytest.raises(OutOfMemory) as caught:
            make().result(WAIT_S)
        assert caught.value.asked_bytes >= 32 << 20
        assert caught.value.free_bytes <= 24 << 20
        assert "32 MiB were asked for and 24 MiB are free" in str(caught.value)
    assert memory.managed(small, (16 << 20,), "uint8").get(timeout_s=WAIT_S).sum() == 0


def test_it_does_not_give_way_and_others_do(small: Device) -> None:
    kept = memory.managed(small, (24 << 20,), "uint8")
    kept[:] = 7
    parts = [array.full(small, (8 << 20,), i, "uint8") for i in range(8)]
    for i, part in enumerate(parts):
        assert part.get(timeout_s=WAIT_S)[-1] == i
    assert told(kept).nbytes == 24 << 20
    assert (kept.get(timeout_s=WAIT_S) == 7).all()
    assert memory.pool(small).result(WAIT_S).away_bytes > 0


# Growing buffers.


@given(lengths=st.lists(st.integers(0, 3000), min_size=1, max_size=6))
def test_a_buffer_grows_where_it_is_and_keeps_its_values(
    device: Device, lengths: list[int]
) -> None:
    lengths = sorted(lengths)
    first = x = memory.growing(device, (lengths[0], 3), 3000, "int32")
    expected = np.zeros((lengths[0], 3), "int32")
    address = told(x).address
    for number, length in enumerate(lengths, 1):
        x = memory.grow(x, length)
        expected = np.concatenate([expected, np.zeros((length - len(expected), 3), "int32")])
        x[len(expected) // 2 :] = number
        expected[len(expected) // 2 :] = number
        np.testing.assert_array_equal(x.get(timeout_s=WAIT_S), expected)
        assert told(x).address == address
    np.testing.assert_array_equal(first.get(timeout_s=WAIT_S), expected[: lengths[0]])
    found = told(x)
    assert (found.kind, found.reserved_bytes) == ("growing", 3000 * 12)
    assert found.nbytes >= x.nbytes


def test_another_part_that_is_there_keeps_its_values(device: Device) -> None:
    x = memory.growing(device, (2,), 10)
    long = memory.grow(x, 6)
    long[:] = 5
    np.testing.assert_array_equal(memory.grow(x, 8).get(timeout_s=WAIT_S), [5] * 6 + [0, 0])
    del long
    np.testing.assert_array_equal(memory.grow(x, 4).get(timeout_s=WAIT_S), [5] * 4)


def test_only_what_it_has_takes_memory(small: Device) -> None:
    x = memory.growing(small, (1 << 20,), 1 << 36, "uint8")  # 64 GiB of addresses
    assert told(x).reserved_bytes == 1 << 36
    before = memory.pool(small).result(WAIT_S).used_bytes
    assert 1 << 20 <= before <= 8 << 20
    longer = memory.grow(x, 20 << 20)
    assert memory.pool(small).result(WAIT_S).used_bytes >= 20 << 20
    with pytest.raises(OutOfMemory):
        memory.grow(longer, 80 << 20).result(WAIT_S)
    longer[-1] = 3
    assert longer.get(timeout_s=WAIT_S)[-1] == 3
    del x, longer
    small.ping().result(WAIT_S)  # what is freed goes with it
    assert memory.pool(small).result(WAIT_S).used_bytes == 0


def test_it_is_refused_beyond_its_reservation(device: Device) -> None:
    x = memory.growing(device, (2, 5), 8, "float64")
    with pytest.raises(
        InvalidArgument, match="length is 9, and the addresses of x are reserved for 8"
    ):
        memory.grow(x, 9).result(WAIT_S)
    assert memory.grow(x, 8).get(timeout_s=WAIT_S).shape == (8, 5)


def test_what_cannot_grow_is_refused(device: Device) -> None:
    x = memory.growing(device, (4, 2), 8)
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: memory.grow(x, 3), "an int from 4"),
        (lambda: memory.grow(x, 5.5), "length is of type int"),  # type: ignore[arg-type]
        (lambda: memory.grow(device.put(np.float32(1)), 3), "only a first axis grows"),
        (lambda: memory.growing(device, (), 3), "no axis cannot grow"),
        (lambda: memory.growing(device, (4,), 3), "an int from 4"),
        (lambda: memory.growing(device, (2,), 3, "text"), "text"),
    ]
    for call, found in calls:
        with pytest.raises(InvalidArgument, match=found):
            call()
    for part, found in (
        (x[1:], "does not begin where its memory does"),
        (x[:, :1], "or has gaps"),
        (memory.managed(device, (4,)), "in managed memory"),
        (device.put(np.zeros(4)), "in pool memory"),
    ):
        with pytest.raises(InvalidArgument, match=found):
            memory.grow(part, 6).result(WAIT_S)


# The pool.


def test_the_pool_tells_what_is_in_use_and_gives_back_the_rest(small: Device) -> None:
    idle = memory.pool(small).result(WAIT_S)
    assert (idle.limit_bytes, idle.used_bytes, idle.away_bytes) == (64 << 20, 0, 0)
    x = array.zeros(small, (4 << 20,), "uint8")
    used = memory.pool(small).result(WAIT_S)
    assert used.used_bytes == 4 << 20
    assert used.free_bytes <= idle.free_bytes - (4 << 20)
    x.result(WAIT_S)
    del x

    def is_empty() -> bool:
        assert memory.trim(small).result(WAIT_S) >= 0
        after = memory.pool(small).result(WAIT_S)
        return (after.used_bytes, after.idle_bytes) == (0, 0)

    assert settle(is_empty)  # a stream may not be told to be behind its use yet


def test_a_limit_holds_for_this_context_and_the_next(small: Device) -> None:
    parts = [array.full(small, (8 << 20,), i, "uint8") for i in range(4)]
    memory.limit(small, 16 << 20).result(WAIT_S)
    state = memory.pool(small).result(WAIT_S)
    assert state.limit_bytes == 16 << 20
    assert state.used_bytes <= 16 << 20
    assert [part.get(timeout_s=WAIT_S)[0] for part in parts] == [0, 1, 2, 3]
    with pytest.raises(OutOfMemory, match="free of 16 MiB"):
        array.zeros(small, (17 << 20,), "uint8").result(WAIT_S)
    del parts
    small.replace()
    assert memory.pool(small).result(WAIT_S).limit_bytes == 16 << 20
    memory.limit(small, None).result(WAIT_S)
    assert memory.pool(small).result(WAIT_S).limit_bytes > 64 << 20
    for wrong in (-1, 1.5, "1 GiB"):
        with pytest.raises(InvalidArgument, match="an int from 0"):
            memory.limit(small, wrong)  # type: ignore[arg-type]
    assert small.limit_bytes is None
