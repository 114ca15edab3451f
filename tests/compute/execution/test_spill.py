"""Memory that is short: garbage goes, buffers give way and come back, and only then it fails."""

import gc
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accel_lab import AccelRef, Device, System, array, blas, jit
from accel_lab.backends.host.device import HostBackend
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.stream import Storage
from accel_lab.errors import AccelError, ContextLost, OutOfMemory

WAIT = 60.0
MIB = 1 << 20
POOL = 4
"""How many buffers of a MiB the device of these tests holds."""


@pytest.fixture(scope="module")
def small() -> Iterator[Device]:
    with System("host", memory_bytes=POOL * MIB) as lab:
        yield lab.devices[0]


def filled(value: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.full(MIB // 4, value, np.float32)


def held(device: Device) -> int:
    """Return the bytes that the buffers of a context have on the device, by its own table."""
    return int(device.run(table_bytes, pure=True).result(WAIT))


def table_bytes() -> int:
    import gc as there

    from accel_lab.compute.execution.buffer_table import BufferTable

    (table,) = (one for one in there.get_objects() if isinstance(one, BufferTable))
    return table.used_bytes


def test_what_is_half_as_large_again_as_the_device_is_computed_with(small: Device) -> None:
    kept = [small.put(filled(i)) for i in range(POOL * 3 // 2)]
    for turn in range(3):
        doubled = [blas.scal(ref, 2.0) for ref in kept]
        for i, ref in enumerate(doubled):
            assert (ref.get(timeout_s=WAIT) == 2.0 * i).all(), (turn, i)
            assert held(small) <= POOL * MIB
    assert [float(ref.get()[-1]) for ref in kept] == list(map(float, range(len(kept))))
    assert small.generation == 1


def test_the_tree_tells_what_waits_on_the_host() -> None:
    with System("host", memory_bytes=2 * MIB) as lab:
        cpu = lab.devices[0]
        kept = [cpu.put(filled(i)) for i in range(5)]
        cpu.ping().result(WAIT)
        until = time.monotonic() + WAIT
        while time.monotonic() < until:
            detail = next(node.detail for node in lab.tree().walk() if node.name == "upload")
            if "moved to the host 3" in detail and f"bytes on the host {3 * MIB}" in detail:
                break
            time.sleep(0.05)
        else:
            pytest.fail(detail)
        del kept


def test_a_buffer_that_shares_its_memory_stays(small: Device) -> None:
    """To move it would free nothing; what is written through the one is read through the other."""
    whole = small.put(filled(1.0))
    part = whole[: MIB // 8]
    kept = [small.put(filled(i)) for i in range(POOL * 2)]
    blas.scal(part, 3.0, out=part)
    both = whole.get(timeout_s=WAIT)
    assert (both[: MIB // 8] == 3.0).all()
    assert (both[MIB // 8 :] == 1.0).all()
    assert (kept[0].get() == 0.0).all()


def keep_as_global(value: Any) -> Any:
    import builtins

    builtins.kept_by_the_test = value  # type: ignore[attr-defined]
    return value


def kept_there() -> float:
    import builtins

    return float(builtins.kept_by_the_test[0])  # type: ignore[attr-defined]


def change_there() -> None:
    import builtins

    builtins.kept_by_the_test[0] = 7.0  # type: ignore[attr-defined]


def is_in_fortran_order(value: Any) -> bool:
    return bool(value.flags.f_contiguous and not value.flags.c_contiguous)


def test_an_array_in_fortran_order_stays_and_others_go(small: Device) -> None:
    """It would come back in C order, and sums of it would be rounded otherwise."""
    shape = (MIB // 1024, 256)
    ours = small.run(np.asfortranarray, small.put(filled(3.0).reshape(shape)))
    more = [small.put(filled(i)) for i in range(POOL * 2)]
    more[-1].result(WAIT)
    assert small.run(is_in_fortran_order, ours, pure=True).result(WAIT)
    assert (ours.get(timeout_s=WAIT) == 3.0).all()
    assert [float(one.get(timeout_s=WAIT)[0]) for one in more] == list(map(float, range(POOL * 2)))


class Cramped(HostBackend):
    """A device that has no memory for a copy of its first array, as strides ask for on a card."""

    def download(self, array: Any, target: Any) -> None:
        if array[0] == 1:
            raise MemoryError("of a test")
        super().download(array, target)


def test_what_cannot_be_copied_stays_and_the_next_goes() -> None:
    """The error has left the ladder, and the libraries on a stream of the copies."""
    arena: Any = None
    context = Context(Cramped(0), [], arena, 1, {}, 3 * 80, 1 << 10)
    work = context.stream("test")
    context.activate(work)
    for id_ in (1, 2, 3):
        array, nbytes = context.allocate((10,), "float64", id_)
        array[:] = id_
        storage = Storage(work, nbytes, f"Put #{id_}")
        storage.used = id_
        context.table.fill(id_, array, array.shape, "float64", storage)
        del array
    room, _ = context.allocate((10,), "float64", 4)
    assert room is not None
    assert list(context.spill.held) == [2]
    assert context.active is work
    context.close()


def test_an_array_that_code_in_the_context_holds_stays(small: Device) -> None:
    ours = small.run(keep_as_global, small.put(filled(5.0))).result(WAIT)
    small.ping().result(WAIT)  # the operand's handle is gone there, too
    more = [small.put(filled(i)) for i in range(POOL * 2)]
    small.run(change_there).result(WAIT)
    assert float(small.get(ours).result(WAIT)[0]) == 7.0
    assert small.run(kept_there).result(WAIT) == 7.0
    assert (more[0].get() == 0.0).all()


def test_operands_that_do_not_fit_together_fail_and_stay_where_they_are() -> None:
    with System("host", memory_bytes=3 * MIB) as lab:
        cpu = lab.devices[0]
        x, y = cpu.put(filled(1.0)), cpu.put(filled(2.0))
        large = cpu.put(np.ones(2 * MIB // 4 + 1, np.float32))
        with pytest.raises(OutOfMemory):
            cpu.run(lambda *_: None, x, y, large).result(WAIT)
        assert (x.get() == 1.0).all()
        assert (y.get() == 2.0).all()
        assert large.get().size == 2 * MIB // 4 + 1


def test_without_spilling_it_fails_and_names_the_owners() -> None:
    with System("host", memory_bytes=2 * MIB, spill=False) as lab:
        cpu = lab.devices[0]
        kept = [array.zeros(cpu, (MIB // 4,)) for _ in range(2)]
        with pytest.raises(OutOfMemory) as caught:
            array.zeros(cpu, (MIB // 4,)).result(WAIT)
        assert caught.value.asked_bytes == MIB
        assert caught.value.free_bytes == 0
        assert [size for _, size in caught.value.owners] == [MIB, MIB]
        del kept


def test_garbage_of_the_notebook_is_freed_before_an_allocation_fails() -> None:
    """Handles in a cycle, which no count of references frees."""
    with System("host", memory_bytes=2 * MIB, spill=False) as lab:
        cpu = lab.devices[0]
        gc.disable()
        try:
            for turn in range(6):
                cycle: list[Any] = [cpu.put(filled(turn))]
                cycle.append(cycle)
                cycle[0].result(WAIT)
        finally:
            gc.enable()
        assert cpu.generation == 1


def test_what_only_unanswered_requests_hold_is_freed_before_an_allocation_fails() -> None:
    """They are done when there is no room, but the notebook has not heard of that."""
    with System("host", memory_bytes=MIB, spill=False) as lab:
        cpu = lab.devices[0]
        for _ in range(8):
            x = array.zeros(cpu, (700, 256), dtype="float32")
            for _ in range(6):
                blas.scal(x, 2.0, out=x)
            del x
        array.zeros(cpu, (700, 256), dtype="float32").result(WAIT)
        lab.check()


def test_garbage_that_a_message_on_its_way_names_is_not_freed_before_it() -> None:
    with System("host", memory_bytes=4 * MIB + 64, spill=False) as lab:
        cpu = lab.devices[0]
        gc.disable()
        try:
            for turn in range(3):
                cycles: list[list[Any]] = [[cpu.put(filled(turn))], [cpu.put(filled(turn))]]
                for cycle in cycles:
                    cycle.append(cycle)
                    cycle[0].result(WAIT)
                cpu.run(time.sleep, 0.2)  # so that all that follows is sent before it runs
                scaled = [blas.scal(cycles[0][0], factor) for factor in (2.0, 3.0, 4.0)]
                norm = blas.nrm2(cycles[0][0])
                del cycle, cycles  # the third product needs the room of the second
                length = turn * (MIB / 4) ** 0.5
                assert float(norm.get(timeout_s=WAIT)) == pytest.approx(length)
                assert (scaled[2].get(timeout_s=WAIT) == 4.0 * turn).all()
                del scaled, norm
                cpu.ping().result(WAIT)
                cpu.ping().result(WAIT)
        finally:
            gc.enable()


def test_what_waits_on_the_host_is_dropped_with_its_last_handle() -> None:
    with System("host", memory_bytes=2 * MIB) as lab:
        cpu = lab.devices[0]

        def waiting() -> str:
            return next(node.detail for node in lab.tree().walk() if node.name == "upload")

        kept = [cpu.put(filled(i)) for i in range(6)]
        cpu.ping().result(WAIT)
        assert (kept[0].get() == 0.0).all()
        kept.clear()
        until = time.monotonic() + WAIT
        while "bytes on the host 0" not in waiting() and time.monotonic() < until:
            cpu.ping().result(WAIT)
            time.sleep(0.05)
        assert "bytes on the host 0" in waiting()


def test_what_waits_on_the_host_comes_back_after_a_loss(small: Device) -> None:
    with System("host", memory_bytes=3 * MIB) as lab:
        cpu = lab.devices[0]
        kept = [cpu.put(filled(i)) for i in range(6)]
        with pytest.raises(ContextLost):
            lab.inject("kill").result(WAIT)
        lab.ready(timeout_s=WAIT)
        assert [float(ref.get(timeout_s=WAIT)[0]) for ref in kept] == list(map(float, range(6)))
        assert cpu.generation == 2
    del small


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "scale", "in place", "axpy", "view", "run", "drop", "get"]),
        st.integers(0, 7),
        st.integers(0, 7),
    ),
    max_size=40,
)


class Twins:
    """Buffers by number, and what NumPy has in their place."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.ours: dict[int, AccelRef] = {}
        self.theirs: dict[int, Any] = {}

    def step(self, what: str, i: int, j: int, value: float) -> None:
        """Do the same on both sides; what cannot be done is left out."""
        ours, theirs = self.ours, self.theirs
        if what == "put" or i not in ours:
            ours[i], theirs[i] = self.device.put(filled(value)), filled(value)
            return
        x, y = ours[i], theirs[i]
        match what:
            case "scale":
                ours[j], theirs[j] = blas.scal(x, 0.5), y * np.float32(0.5)
            case "in place":
                blas.scal(x, 2.0, out=x)
                y *= np.float32(2.0)
            case "axpy" if j in ours and y.size == theirs[j].size:
                ours[i], theirs[i] = blas.axpy(x, ours[j]), y + theirs[j]
            case "view" if y.size == MIB // 4:
                ours[j], theirs[j] = x[: MIB // 8], y[: MIB // 8]
            case "run":
                ours[j], theirs[j] = self.device.run(np.negative, x, pure=True), -y
            case "drop":
                del ours[i], theirs[i]
            case "get":
                self.compare(i)

    def compare(self, i: int) -> None:
        """Views and the operands of one message can fill the device: then it may fail."""
        ref = self.ours[i]
        try:
            found = ref.get(timeout_s=WAIT)
        except AccelError as error:
            if not isinstance(error, OutOfMemory) and not isinstance(error.__cause__, OutOfMemory):
                raise
        else:
            np.testing.assert_array_equal(found, self.theirs[i])

    @property
    def failed(self) -> bool:
        """Whether something has failed so far: what was written in place may not be."""
        return any(ref.failed for ref in self.ours.values())


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
def test_a_program_computes_what_numpy_does_whatever_has_to_move(
    small: Device, steps: list[tuple[str, int, int]]
) -> None:
    twins = Twins(small)
    for place, step in enumerate(steps):
        twins.step(*step, float(place))
        small.ping().result(WAIT)
        if twins.failed:
            return
    for i in twins.ours:
        twins.compare(i)


def test_zeros_find_room_too(small: Device) -> None:
    made = [array.zeros(small, (MIB // 4,)) for _ in range(POOL * 2)]
    assert all((one.get(timeout_s=WAIT) == 0).all() for one in made)


def test_a_kernel_finds_its_buffers_where_they_have_come_back(small: Device) -> None:
    source = 'extern "C" __global__ void next(const float* x, float* y) { y[0] = x[0] + 1; }'
    kernel = jit.compile(small, source, "next").result()
    x, y = small.put(filled(0)), small.put(filled(0))
    others: list[AccelRef] = []
    for turn in range(4):
        for _ in range(3):  # what comes again is enqueued without another look
            kernel(1, 1, (x, y)).result(WAIT)
            kernel(1, 1, (y, x)).result(WAIT)
        others = [small.put(filled(i)) for i in range(POOL)]
        others[-1].result(WAIT)
        assert float(x.get(timeout_s=WAIT)[0]) == 6.0 * (turn + 1)
        assert float(y.get(timeout_s=WAIT)[0]) == 6.0 * turn + 5
    assert len(others) == POOL
    assert small.generation == 1
