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


def test_a_put_is_one_copy_on_the_card(capsys: pytest.CaptureFixture[str]) -> None:
    """Against a copy between two arrays of the process; half a millisecond is the opening."""
    found = run(
        """
with System("cuda", devices=1) as lab:
    gpu, found = lab.devices[0], {}
    for gibibytes in (1, 8):
        x = cupy.ones(gibibytes << 28, "f")
        y = cupy.empty_like(x)

        def median(work):
            times = []
            for _ in range(15):
                cupy.cuda.Device().synchronize()
                begin = time.perf_counter()
                work()
                times.append(time.perf_counter() - begin)
            return statistics.median(times)

        def copy():
            y[...] = x
            cupy.cuda.Device().synchronize()

        found[gibibytes] = [median(copy), median(lambda: gpu.put(x))]
    print(json.dumps(found))
"""
    )
    with capsys.disabled():
        for gibibytes, (raw, put) in found.items():
            line = f"{gibibytes} GiB: copy {raw * 1e3:.3f} ms, put {put * 1e3:.3f} ms"
            sys.stdout.write(f"\n{line}, {raw / put:.3f}\n")
    raw, put = found["8"]
    assert put < 1.5 * raw
