"""Memory that is short on a card: what gives way, what comes back, and what is told about it."""

import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, System, array, blas
from accel_lab.compute.device import Device
from accel_lab.compute.residency.resident import ResidentBuffer
from accel_lab.display.sizes import size
from accel_lab.errors import OutOfMemory, UserCodeError

pytestmark = pytest.mark.gpu

WAIT_S = 120.0
MIB = 1 << 20
EACH = 64 * MIB
POOL = 8
"""How many buffers of `EACH` bytes the pool of these tests may hold."""


def limit_pool(nbytes: int) -> None:
    import cupy

    cupy.get_default_memory_pool().set_limit(size=nbytes)


def used_bytes() -> int:
    import cupy

    return int(cupy.get_default_memory_pool().used_bytes())


@pytest.fixture
def small() -> Iterator[Device]:
    with System("cuda", devices=1) as lab:
        device = lab.devices[0]
        device.run(limit_pool, POOL * EACH, pure=True).result(WAIT_S)
        yield device


def filled(value: float) -> Any:
    return np.full(EACH // 4, value, np.float32)


def test_what_is_half_as_large_again_as_the_pool_is_computed_with(small: Device) -> None:
    kept = [small.put(filled(i)) for i in range(POOL * 3 // 2)]
    for turn in range(3):
        for i, ref in enumerate(kept):
            doubled = blas.scal(ref, 2.0)
            assert (doubled.get(timeout_s=WAIT_S) == 2.0 * i).all(), (turn, i)
            assert small.run(used_bytes, pure=True).result(WAIT_S) <= POOL * EACH
    assert small.generation == 1


def test_a_view_and_its_array_stay_together(small: Device) -> None:
    whole = small.put(filled(1.0))
    part = whole[: MIB // 8]
    kept = [small.put(filled(i)) for i in range(POOL * 3 // 2)]
    blas.scal(part, 3.0, out=part)
    both = whole.get(timeout_s=WAIT_S)
    assert (both[: MIB // 8] == 3.0).all()
    assert (both[MIB // 8 :] == 1.0).all()
    assert [float(ref.get(timeout_s=WAIT_S)[-1]) for ref in kept] == list(map(float, range(12)))


def test_without_spilling_it_fails_and_the_next_message_is_served() -> None:
    with System("cuda", devices=1, spill=False) as lab:
        device = lab.devices[0]
        device.run(limit_pool, POOL * EACH, pure=True).result(WAIT_S)
        kept: list[AccelRef] = [device.put(filled(i)) for i in range(POOL)]
        with pytest.raises(OutOfMemory) as caught:
            blas.scal(kept[0], 2.0).result(WAIT_S)
        assert caught.value.asked_bytes >= EACH
        del kept[1]
        assert float(blas.scal(kept[1], 2.0).get(timeout_s=WAIT_S)[0]) == 4.0


def test_what_fails_among_pieces_says_how_much_there_is_in_one() -> None:
    """What CuPy's pool has unused between buffers is free, and no use for a large one."""
    with System("cuda", devices=1, spill=False) as lab:
        device = lab.devices[0]
        device.run(limit_pool, POOL * EACH, pure=True).result(WAIT_S)
        whole = array.zeros(device, (POOL // 2 * EACH,), dtype="uint8")
        whole.result(WAIT_S)
        del whole
        device.ping().result(WAIT_S)  # the freed go with the next batch
        kept = [array.zeros(device, (EACH,), dtype="uint8") for _ in range(POOL // 2)]
        kept[-1].result(WAIT_S)
        del kept[::2]
        device.ping().result(WAIT_S)
        with pytest.raises(OutOfMemory) as caught:
            array.zeros(device, (POOL // 2 * EACH + MIB,), dtype="uint8").result(WAIT_S)
        error = caught.value
        used, total = device.run(of_pool, pure=True).result(WAIT_S)
        assert total - used >= 2 * EACH  # else there are no pieces, and this shows nothing
        assert error.asked_bytes < error.free_bytes == POOL * EACH - used
        assert error.largest_free_bytes == POOL * EACH - total
        told = f"{size(error.largest_free_bytes)} of these in one piece and the rest in pieces"
        assert told in str(error)
        assert ["kept[" in names[0] for names in error.kept_by] == [True, True]
        large = array.zeros(device, (error.largest_free_bytes,), dtype="uint8")
        large.result(WAIT_S)


def of_pool() -> tuple[int, int]:
    import cupy

    pool = cupy.get_default_memory_pool()
    return int(pool.used_bytes()), int(pool.total_bytes())


def test_what_the_driver_has_in_one_piece_can_be_had() -> None:
    with System("cuda", devices=1, spill=False) as lab:
        device = lab.devices[0]
        with pytest.raises(OutOfMemory) as caught:
            lab.inject("out of memory").result(WAIT_S)
        error = caught.value
        assert 0 < error.largest_free_bytes <= error.free_bytes < error.asked_bytes

        def take(nbytes: int) -> int:
            import cupy

            return int(cupy.empty(nbytes, "uint8").nbytes)

        nbytes = error.largest_free_bytes - 256 * MIB  # others may have some by now
        assert device.run(take, nbytes).result(WAIT_S) == nbytes


def test_allocations_of_the_user_s_code_make_room_too(small: Device) -> None:
    kept = [small.put(filled(i)) for i in range(POOL)]

    def three(n: int) -> float:
        import cupy

        with cupy.cuda.Stream(non_blocking=True):
            held = [cupy.full(n, i, "f") for i in range(3)]
            return float(sum(x.sum() for x in held))

    for _ in range(3):
        assert small.run(three, EACH // 4).result(WAIT_S) == 3 * EACH // 4
    assert [float(ref.get(timeout_s=WAIT_S)[-1]) for ref in kept] == list(map(float, range(POOL)))


def test_torch_and_cupy_draw_on_one_pool(capsys: pytest.CaptureFixture[str]) -> None:
    """What CuPy's own holds is less than one array of the work: all else is in PyTorch's."""

    def compute(steps: int) -> tuple[int, int, int]:
        import cupy
        import torch

        model = torch.nn.Sequential(
            torch.nn.Linear(2048, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 2048)
        ).cuda()
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(steps):
            x = cupy.random.standard_normal((8192, 2048), dtype="f")
            y = cupy.tanh(x @ x[:2048])
            optimizer.zero_grad()
            loss = ((model(torch.from_dlpack(x)) - torch.from_dlpack(y)) ** 2).mean()
            loss.backward()
            optimizer.step()
            del x, y, loss
        torch.cuda.synchronize()
        return (
            torch.cuda.max_memory_reserved(),
            torch.cuda.max_memory_allocated(),
            int(cupy.get_default_memory_pool().total_bytes()),
        )

    with System("cuda", devices=1) as lab:
        gpu = lab.devices[0]
        kept = gpu.put(np.arange(1 << 20, dtype=np.float32))
        gpu.run(compute, 1).result(WAIT_S)
        x = gpu.run(lambda a: a * 2, kept)
        assert float(x.get(timeout_s=WAIT_S)[-1]) == 2.0 * ((1 << 20) - 1)
        del kept, x
        gpu.ping().result(WAIT_S)
        gpu.run(compute, 1).result(WAIT_S)
        reserved, live, own = gpu.run(compute, 30).result(WAIT_S)
    with capsys.disabled():
        text = f"{reserved / 2**20:.0f} MiB reserved, {live / 2**20:.0f} MiB in use at most"
        sys.stdout.write(f"\ntorch and cupy: {text}, {reserved / live:.3f}, CuPy's own {own}\n")
    assert own < 8192 * 2048 * 4
    assert reserved <= 1.5 * live


@pytest.mark.parametrize("chosen", ["", "max_split_size_mb:512"])
def test_the_user_s_settings_of_pytorch_s_pool_stay(
    monkeypatch: pytest.MonkeyPatch, chosen: str
) -> None:
    """Where there are none, its segments grow."""
    names = "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"
    for name in names:
        monkeypatch.delenv(name, raising=False)
    if chosen:
        monkeypatch.setenv(names[1], chosen)
    with System("cuda", devices=1) as lab:
        found = lab.devices[0].run(lambda: [os.environ.get(name) for name in names])
        expected = [None, chosen] if chosen else ["expandable_segments:True", None]
        assert found.result(WAIT_S) == expected


def test_the_frames_of_a_failed_function_give_their_memory_back(gpu: Device) -> None:
    def fails(n: int) -> None:
        import cupy

        kept = [cupy.ones(n, "b") for _ in range(4)]
        cycle: list[Any] = [kept]
        cycle.append(cycle)
        raise ValueError(len(kept))

    before = gpu.run(used_bytes, pure=True).result(WAIT_S)
    with pytest.raises(UserCodeError):
        gpu.run(fails, EACH).result(WAIT_S)
    gpu.release_frames()
    after = gpu.run(used_bytes, pure=True).result(WAIT_S)
    assert after - before <= 0.01 * 4 * EACH


def test_what_a_buffer_holds_is_told(gpu: Device) -> None:
    x = gpu.put(np.zeros(MIB, np.float32))
    x.result(WAIT_S)
    (row,) = (row for row in gpu.resident if isinstance(row, ResidentBuffer) and x.id in row.ids)
    assert (row.nbytes, row.dtype, row.shape) == (4 * MIB, "float32", (MIB,))
