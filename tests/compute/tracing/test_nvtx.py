"""NVTX ranges of messages, as a package that stands in for `nvtx` is told of them."""

import json
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import System, array, blas, jit
from accel_lab.compute.execution.context import Context
from accel_lab.compute.output import cell_origin
from accel_lab.compute.output.cell_origin import Origin
from accel_lab.errors import ContextLost, InvalidArgument, TelemetryUnavailable, UserCodeError
from tests.conftest import require

WAIT_S = 60.0


def ranges(path: Path) -> list[dict[str, Any]]:
    """Return the ranges in the order of their begin; each thread has closed what it opened."""
    found: list[dict[str, Any]] = []
    stacks: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for line in path.read_text().splitlines():
        one = json.loads(line)
        stack = stacks[one["pid"], one["thread"]]
        if one["does"] == "push":
            stack.append(one)
            found.append(one)
        else:
            assert stack.pop()["domain"] == one["domain"]
    left = [one["name"] for stack in stacks.values() for one in stack]
    assert set(left) <= {"Inject"}  # whose process is gone
    return found


def computing(path: Path) -> list[tuple[str, str, int]]:
    """Return the domain, name and cell of those that compute."""
    copies = ("upload", "download")
    return [
        (one["domain"].removeprefix("accel_lab."), one["name"], one["cell"])
        for one in ranges(path)
        if one["domain"].removeprefix("accel_lab.") not in copies
    ]


def test_each_message_is_a_range_of_its_library_s_domain(told: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 8, 8))
    with System("host", 1, trace="nvtx") as lab:
        x, y = map(lab.devices[0].put, (a, b))
        out = blas.gemm(x, y)
        for _ in range(3):
            blas.gemm(x, y, out=out).result(WAIT_S)
        array.exp(array.add(out, 1.0))  # two that would be computed as one
        blas.gemm(x, y, out=out)
        found = array.exp(out).get(timeout_s=WAIT_S)
    np.testing.assert_allclose(found, np.exp(a @ b))
    gemm, unary = ("blas", "Gemm", 0), ("array", "Unary", 0)
    assert computing(told) == [*[gemm] * 4, ("array", "Binary", 0), unary, gemm, unary]
    numbers = [one["message"] for one in ranges(told)]
    assert numbers == sorted(set(numbers))
    assert numbers[0] > 0


def test_the_payload_has_the_cell_also_of_what_waited_for_a_context(
    told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cell(number: int) -> None:
        monkeypatch.setattr(cell_origin, "_current", Origin(number))

    lab = System("host", 1, trace="nvtx")
    device = lab.devices[0]
    cell(3)
    x = device.put(np.ones((4, 4)))
    blas.gemm(x, x)
    cell(5)
    y = array.exp(x)  # both cells' wait, or not: the context has only begun to start
    lab.ready()
    array.exp(x)
    cell(6)
    array.add(x, y).result(WAIT_S)
    with pytest.raises(ContextLost):
        lab.inject("kill").result(WAIT_S)
    array.exp(x).result(WAIT_S)  # in the next context, which has to be told anew
    lab.close()
    found = computing(told)
    assert found[:4] == [
        ("blas", "Gemm", 3),
        ("array", "Unary", 5),
        ("array", "Unary", 5),
        ("array", "Binary", 6),
    ]
    assert found[-1] == ("array", "Unary", 6)
    assert len({one["pid"] for one in ranges(told)}) == 2


def test_what_is_left_for_later_has_ranges_on_the_threads_that_do_it(told: Path) -> None:
    require("compiler")
    source = "__global__ void step(float* x) { x[threadIdx.x] += 1; }"
    with System("host", 1, trace="nvtx") as lab:
        x = lab.devices[0].put(np.zeros(4, np.float32))
        step = jit.compile(lab.devices[0], source, "step").result(WAIT_S)
        for _ in range(60):  # the very same launch, which is prepared where nobody follows
            step(1, 4, (x,)).result(WAIT_S)
        assert x.get(timeout_s=WAIT_S).tolist() == [60.0] * 4
    compiled = [one for one in ranges(told) if one["name"] == "Compile"]
    assert len({one["message"] for one in compiled}) == 1
    assert len({one["thread"] for one in compiled}) == 2
    assert len(compiled) == 3  # the handler, the compilation, and what ends the launch
    assert computing(told).count(("jit", "step", 0)) == 60


def test_a_message_that_fails_ends_its_range(told: Path) -> None:
    with System("host", 1, trace="nvtx") as lab:
        with pytest.raises(UserCodeError):
            lab.devices[0].run(divmod, 1, 0).result(WAIT_S)
        assert lab.devices[0].run(abs, -1).result(WAIT_S) == 1
    assert [domain for domain, *_ in computing(told)] == ["run", "run"]


def test_off_there_is_nothing_in_the_launch_path(told: Path) -> None:
    """The handlers are the actors' own methods, and no cell is told to a context."""

    def handlers() -> list[bool]:
        import gc

        (context,) = (one for one in gc.get_objects() if type(one) is Context)
        return [hasattr(route.handler, "__self__") for route in context.routes.values()]

    with System("host", 1) as lab:
        assert all(lab.devices[0].run(handlers).result(WAIT_S))
        assert lab._supervisors[0].requests.queue.cells is None
    with System("host", 1, trace=("nvtx", "nvtx")) as lab:
        assert lab.trace == ("nvtx",)
        assert not any(lab.devices[0].run(handlers).result(WAIT_S))
    assert all("abs" not in one["name"] for one in ranges(told))


def test_the_package_itself_takes_the_ranges() -> None:
    if find_spec("nvtx") is None:
        pytest.skip("nvtx is not installed")
    with System("host", 1, trace="nvtx") as lab:
        x = lab.devices[0].put(np.ones((4, 4)))
        assert blas.gemm(x, x).get(timeout_s=WAIT_S).tolist() == [[4.0] * 4] * 4


def test_what_cannot_follow_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TelemetryUnavailable, match="the host backend has no CUPTI"):
        System("host", 1, trace="cupti")
    with pytest.raises(InvalidArgument, match="trace is nvtx or cupti or cupti-calls, not"):
        System("host", 1, trace="nsight")  # type: ignore[arg-type]
    monkeypatch.setattr("accel_lab.compute.tracing.asked.find_spec", lambda _: None)
    with pytest.raises(TelemetryUnavailable, match=r"needs nvtx: .*install nvtx"):
        System("host", 1, trace="nvtx")
    with System("host", 1) as lab, pytest.raises(InvalidArgument, match='open it with trace="cup'):
        lab.profile()
