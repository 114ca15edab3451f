"""Arrays that the notebook's own CuPy and PyTorch hold on the card, put on a device.

In processes of their own, because this one shall have no CUDA context.
"""

import json
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.gpu

BEGIN = """
import json, statistics, time, warnings
warnings.simplefilter("ignore", RuntimeWarning)
import cupy, numpy as np, torch
from accel_lab import System
from accel_lab.errors import InvalidArgument
WAIT = 120.0
"""


def run(program: str) -> Any:
    command = [sys.executable, "-c", BEGIN + program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=140, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("recover", ["replay", "stale"])
def test_their_values_arrive(recover: str) -> None:
    found = run(
        f"""
with System("cuda", devices=1, recover={recover!r}) as lab:
    gpu = lab.devices[0]
    equal = []
    for n in (0, 1, 1000, 1 << 20, 20 << 20, 33 << 20):
        x = cupy.random.default_rng(n).random(n, dtype=np.float32)
        t = torch.from_dlpack(x) * 2
        equal.append(bool((gpu.put(x).get(timeout_s=WAIT) == x.get()).all()))
        equal.append(bool((gpu.put(t).get(timeout_s=WAIT) == t.cpu().numpy()).all()))
    y = cupy.arange(12.0).reshape(3, 4)
    equal.append((gpu.put(y.T).get(timeout_s=WAIT) == y.T.get()).all().item())
    z = torch.arange(8, device="cuda", dtype=torch.bfloat16)[::2]
    equal.append(gpu.put(z).dtype == "bfloat16")
    equal.append(gpu.put(z).get(timeout_s=WAIT).astype("f").tolist() == [0, 2, 4, 6])
    pooled = cupy.cuda.MemoryAsyncPool()
    with cupy.cuda.using_allocator(pooled.malloc):
        w = cupy.full(40 << 20, 3, "f")
    equal.append(bool((gpu.put(w).get(timeout_s=WAIT) == 3).all()))
    print(json.dumps(equal))
"""
    )
    assert found == [True] * len(found)


def test_an_array_is_waited_for_and_free_afterwards() -> None:
    found = run(
        """
with System("cuda", devices=1) as lab:
    gpu = lab.devices[0]
    n, equal = 64 << 20, []
    with cupy.cuda.Stream(non_blocking=True):
        for turn in range(1, 6):
            x = cupy.zeros(n, "f")
            for _ in range(200):
                x += 1
            ref = gpu.put(x)
            x[:] = -1  # it has been read
            equal.append(bool((ref.get(timeout_s=WAIT) == 200).all()))
    print(json.dumps(equal))
"""
    )
    assert found == [True] * 5


def test_a_fault_of_the_context_leaves_their_cuda_as_it_was() -> None:
    found = run(
        """
with System("cuda", devices=1) as lab:
    gpu = lab.devices[0]
    x = cupy.full(40 << 20, 2, "f")
    ref = gpu.put(x).result(WAIT)
    gpu.checkpoint(ref).result(WAIT)
    try:
        lab.inject("poison").result(WAIT)
    except Exception as error:
        kind = type(error).__name__
    print(json.dumps([kind, float(x.sum()) / x.size, float(ref.get(timeout_s=WAIT)[-1])]))
"""
    )
    assert found == ["ContextLost", 2.0, 2.0]


def test_memory_that_is_used_again_is_read_as_it_is_then() -> None:
    """The context still has the allocation open, in which another array lies by then."""
    found = run(
        """
with System("cuda", devices=1) as lab:
    gpu, n, equal = lab.devices[0], 40 << 20, []
    kept = [cupy.full(n, -1, "f"), torch.full((n,), -2, dtype=torch.float32, device="cuda")]
    for turn in range(8):
        x = cupy.full(n, turn, "f")
        t = torch.full((n,), 100 + turn, dtype=torch.float32, device="cuda")
        refs = [gpu.put(a) for a in (x, x[n // 2 :], t, t[n // 2 :], *kept)]
        del x, t
        lasts = [float(ref.get(timeout_s=WAIT)[-1]) for ref in refs]
        equal.append(lasts == [turn, turn, 100 + turn, 100 + turn, -1, -2])
    t = torch.zeros(n, device="cuda")
    for turn in range(4):
        t.set_(torch.full((n << turn % 2,), turn, dtype=torch.float32, device="cuda"))
        equal.append(bool((gpu.put(t).get(timeout_s=WAIT) == turn).all()))
    many = [cupy.full(n, i, "f") for i in range(12)]  # more than are kept open
    for _ in range(3):
        refs = [gpu.put(a) for a in many]
        equal.append([float(r.get(timeout_s=WAIT)[0]) for r in refs] == list(range(12)))
        del refs
    lab.check()
    print(json.dumps(equal))
"""
    )
    assert found == [True] * len(found)


SOON = """
def soon(true, within_s=2):
    until = time.monotonic() + within_s
    while not true() and time.monotonic() < until:
        time.sleep(0.005)
    return bool(true())
pool = cupy.get_default_memory_pool()
n = 64 << 20
"""


def test_memory_is_its_pools_again_soon_after_its_array_is_gone() -> None:
    """Whether the context is there, suspended, or lost, or the system closed."""
    found = run(
        SOON
        + """
with System("cuda", devices=1) as lab:
    gpu, free = lab.devices[0], []
    x = cupy.ones(n, "f")
    ref = gpu.put(x).result(WAIT)
    gpu.put(x)
    used = pool.used_bytes()
    del x
    free.append(soon(lambda: pool.used_bytes() <= used - 4 * n))
    pool.free_all_blocks()
    t = torch.ones(n, device="cuda")
    gpu.put(t)
    used = torch.cuda.memory_allocated()
    del t
    free.append(soon(lambda: torch.cuda.memory_allocated() <= used - 4 * n))
    torch.cuda.empty_cache()
    with torch.no_grad():
        gpu.put(torch.ones(n, device="cuda").reshape(-1, 64).T)  # a copy of it is put
    free.append(soon(lambda: torch.cuda.memory_allocated() <= used - 4 * n))

    x = cupy.ones(n, "f")
    gpu.put(x)
    try:
        lab.inject("poison").result(WAIT)
    except Exception as error:
        free.append(type(error).__name__ == "ContextLost")
    del x
    free.append(soon(lambda: pool.used_bytes() == 0, 20))  # the process has to be gone
    x = cupy.full(n, 5, "f")
    free.append(float(gpu.put(x).get(timeout_s=WAIT)[-1]) == 5)
    gpu.suspend()
    del x
    free.append(soon(lambda: pool.used_bytes() == 0, 20) and gpu.state == "suspended")
    x = cupy.full(n, 6, "f")
    free.append(float(gpu.put(x).get(timeout_s=WAIT)[-1]) == 6)
del x
free.append(soon(lambda: pool.used_bytes() == 0))
print(json.dumps(free))
"""
    )
    assert found == [True] * len(found)


def test_what_does_not_tell_of_its_end_is_not_kept_open() -> None:
    """An array that is known by its interface alone lives until the context has closed it."""
    found = run(
        SOON
        + """
class Other:
    def __init__(self, array):
        self.array = array
        self.dtype = array.dtype

    @property
    def __cuda_array_interface__(self):
        return self.array.__cuda_array_interface__

with System("cuda", devices=1) as lab:
    gpu, found = lab.devices[0], []
    for turn in range(5):
        ref = gpu.put(Other(cupy.full(n, turn, "f")))
        found.append(float(ref.get(timeout_s=WAIT)[-1]) == turn)
    found.append(soon(lambda: pool.used_bytes() == 0))
    print(json.dumps(found))
"""
    )
    assert found == [True] * len(found)


def test_puts_that_are_not_waited_for_run_at_the_rate_of_copies(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Sixteen of 1 GiB in a row, beside as many copies between two arrays of the process."""
    found = run(
        """
with System("cuda", devices=1) as lab:
    gpu = lab.devices[0]
    stream = cupy.cuda.Stream(non_blocking=True)
    x = cupy.arange(1 << 28, dtype="f")
    y = cupy.empty_like(x)
    t = torch.from_dlpack(x).clone()

    def timed(work):
        cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        done = work()
        return time.perf_counter() - begin, done

    def copies():
        for _ in range(16):
            y.data.copy_from_device_async(x.data, x.nbytes, stream)
        stream.synchronize()

    def puts(array):
        refs = [gpu.put(array, non_blocking=True) for _ in range(16)]
        for ref in refs:
            ref.result(WAIT)
        return refs

    took = {"copies": [], "CuPy": [], "PyTorch": []}
    for turn in range(13):
        rows = {"copies": timed(copies)[0]}
        for kind, array in ("CuPy", x), ("PyTorch", t):
            rows[kind], refs = timed(lambda: puts(array))
            assert turn or all(float(ref[-1].get()) == float(x[-1]) for ref in refs)
            del refs
        for kind, seconds in rows.items():
            took[kind].append(seconds)
    print(json.dumps({kind: statistics.median(all_of[3:]) / 16 for kind, all_of in took.items()}))
"""
    )
    with capsys.disabled():
        for kind in ("CuPy", "PyTorch"):
            ratio = found["copies"] / found[kind]
            line = f"{found[kind] * 1e3:.3f} ms for 1 GiB of {kind}, a copy"
            sys.stdout.write(f"\n{line} {found['copies'] * 1e3:.3f} ms, {ratio:.3f}")
    assert all(found["copies"] / found[kind] >= 0.9 for kind in ("CuPy", "PyTorch"))


def test_a_put_is_one_copy_on_the_card(capsys: pytest.CaptureFixture[str]) -> None:
    """Against a copy between two arrays of the process. The first put opens the allocation."""
    found = run(
        """
with System("cuda", devices=1) as lab:
    gpu, found = lab.devices[0], []
    stream = cupy.cuda.Stream(non_blocking=True)

    def timed(work):
        cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin

    for gibibytes in (1, 8):
        x = cupy.ones(gibibytes << 28, "f")
        y = cupy.empty_like(x)
        t = torch.ones(gibibytes << 28, device="cuda")

        def copy():
            y.data.copy_from_device_async(x.data, x.nbytes, stream)
            stream.synchronize()

        def put(array):
            first = timed(lambda: gpu.put(array))
            timed(lambda: gpu.put(array))  # the context's pool has room for two by now
            return first, statistics.median(timed(lambda: gpu.put(array)) for _ in range(31))

        gpu.put(y), gpu.put(y)
        raw = statistics.median(timed(copy) for _ in range(31))
        for kind, array in ("CuPy", x), ("PyTorch", t):
            found.append([gibibytes, kind, raw, *put(array)])
        del x, y, t, array
        cupy.get_default_memory_pool().free_all_blocks()
        torch.cuda.empty_cache()
    print(json.dumps(found))
"""
    )
    with capsys.disabled():
        sys.stdout.write("\n")
        for gibibytes, kind, raw, first, again in found:
            line = f"{gibibytes} GiB of {kind}: copy {raw * 1e3:.3f} ms, first put"
            line += f" {first * 1e3:.3f} ms, again {again * 1e3:.3f} ms, {raw / again:.3f}"
            sys.stdout.write(f"{line}\n")
    for gibibytes, kind, raw, _, again in found:
        # 0.84 to 0.94: what Python takes beside the copy varies by a factor of two there.
        assert raw / again >= 0.7, f"{raw / again:.3f} of a copy for {gibibytes} GiB of {kind}"
