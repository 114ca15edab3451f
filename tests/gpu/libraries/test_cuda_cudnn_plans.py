"""cuDNN's plans are on disk for the next process, whatever became of the files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, System, attention, dnn
from accel_lab.backends.cuda.handles.cudnn_disk import PLAN
from accel_lab.compute.device import Device
from tests.contract.samples import assert_same, reals, value

pytestmark = pytest.mark.gpu
WAIT_S = 100.0


def results(gpu: Device) -> list[AccelRef]:
    """Send what cuDNN makes a plan of: convolutions, a graph, attention, pages."""
    x, w = (
        gpu.put(reals(seed, shape, "float16"))
        for seed, shape in enumerate([(2, 8, 12, 12), (16, 8, 3, 3)])
    )
    q, k = (gpu.put(reals(seed, (2, 4, 128, 64), "float16")) for seed in (2, 3))
    y, lse = attention.attend(q, k, k, causal="top_left", lse=True)
    assert lse is not None
    back = attention.attend_gradient(q, k, k, y, lse, y, causal="top_left")
    alibi, _ = attention.attend(q, k, k, causal="top_left", alibi=True)
    cache = attention.KVCache(gpu, heads=4, width=64, pages=32, page_size=16, dtype="float16")
    cache.append(k, k, (0, 1))
    decoded, _ = cache.attend(q[:, :, :1], (0, 1))
    chunk, _ = cache.attend(q[:, :, :64], (0, 1))
    graph = dnn.Graph(2)
    graph.apply("relu", graph.operands[0] + graph.operands[1])
    dy = dnn.conv(x, w, padding=1)
    data = dnn.conv_data_gradient(dy, w, (12, 12), padding=1)
    filters = dnn.conv_filter_gradient(x, dy, (3, 3), padding=1)
    return [dy, data, filters, graph(x, x), y, *back[:3], alibi, decoded, chunk]


def counts(gpu: Device) -> tuple[Mapping[str, int], list[str]]:
    """Return both libraries' counts of plans, and refusals; skips where cuDNN is not installed."""

    def look() -> Any:
        import gc
        from importlib.util import find_spec

        from accel_lab.backends.cuda.handles.cudnn_graphs import CudnnGraphs

        if find_spec("cudnn") is None:
            return None
        both = [one for one in gc.get_objects() if isinstance(one, CudnnGraphs)]
        several = [one.statistics() for one in both]
        counted = {name: sum(one[name] for one in several) for name in several[0]}
        return counted, [one.disk.refusal for one in both]

    found = gpu.run(look).result(timeout_s=WAIT_S)
    if found is None:
        pytest.skip("nvidia-cudnn-frontend is not installed")
    counted, refusals = found
    return {name.removeprefix("cuDNN "): count for name, count in counted.items()}, refusals


def ran() -> tuple[list[Any], Mapping[str, int]]:
    """Return all results of a system of its own, and what that counts of its plans."""
    with System("cuda", devices=1) as lab:
        (gpu,) = lab.devices
        made = [value(gpu, ref) for ref in results(gpu)]
        counted, refusals = counts(gpu)
        assert counted["plans not kept"] == 0, refusals
        return made, counted


def test_a_second_process_loads_the_plans_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCEL_LAB_CACHE", str(tmp_path))
    first, built = ran()
    files = sorted(tmp_path.glob(f"cudnn/*/{PLAN}"))
    assert built["plans from disk"] == 0
    assert 6 <= len(files) <= built["misses"]
    second, loaded = ran()
    assert loaded["plans from disk"] == len(files)
    for got, expected in zip(second, first, strict=True):
        assert_same(got, expected)


def test_damaged_and_foreign_files_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCEL_LAB_CACHE", str(tmp_path))
    first, _ = ran()
    files = sorted(tmp_path.glob(f"cudnn/*/{PLAN}"))
    files[0].write_bytes(files[0].read_bytes()[:-9])
    files[1].write_bytes(np.random.default_rng(0).bytes(4000))
    again, counted = ran()
    assert counted["plans from disk"] == len(files) - 2
    for got, expected in zip(again, first, strict=True):
        assert_same(got, expected)
    assert ran()[1]["plans from disk"] == len(files)
