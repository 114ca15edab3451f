"""What streams did in the last second, from what was traced of them."""

import time
from collections.abc import Iterable
from typing import Any

import pytest

from accel_lab import blas
from accel_lab.compute.events.samples import Slice
from accel_lab.system import System
from accel_lab.views import tree
from accel_lab.views.scene.scene import Scene
from accel_lab.views.scene.tally import PACKED
from accel_lab.views.widget.load import Load, Loads, loads
from tests.views.work import Recorded, work

NOW = 1000.0


def kernel(start: float, end: float | None, stream: str = "blas", seq: int = 1) -> Slice:
    return Slice(seq, "Gemm", stream, "kernel", start, end)


def seen(
    *done: Slice, running: Iterable[Slice] = (), until: float = NOW
) -> dict[tuple[str, str], Load]:
    scene = Scene()
    scene.add(work("gpu0", done, running))
    return dict(Loads().look(scene, until, 0.0))


def test_messages_and_busy_time_of_the_last_second_are_told_of_each_stream() -> None:
    found = seen(
        kernel(NOW - 9, NOW - 8),
        kernel(NOW - 1.2, NOW - 0.9),
        kernel(NOW - 0.5, NOW - 0.25),
        kernel(NOW - 0.375, NOW - 0.125, "fft"),
    )
    assert found["gpu0", "blas"] == pytest.approx((2.0, 0.35))
    assert found["gpu0", "fft"] == pytest.approx((1.0, 0.25))
    assert found["gpu0", ""] == pytest.approx((3.0, 0.475)), "what overlaps counts once"


def test_a_device_is_as_busy_as_its_busiest_stream_at_least() -> None:
    found = seen(*(kernel(NOW - 1 + n / 10, NOW - 0.95 + n / 10, "ab"[n % 2]) for n in range(10)))
    device = found.pop(("gpu0", ""))
    for stream in found.values():
        assert device.rate >= stream.rate
        assert device.busy is not None
        assert stream.busy is not None
        assert device.busy >= stream.busy


def test_what_runs_is_busy_since_it_began() -> None:
    assert seen(running=[kernel(NOW - 0.25, None)]) == {
        ("gpu0", "blas"): (0.0, 0.25),
        ("gpu0", ""): (0.0, 0.25),
    }
    assert seen(running=[kernel(NOW - 60, None)])["gpu0", "blas"].busy == 1.0


def test_nothing_is_said_of_what_rests() -> None:
    assert seen() == {}
    assert seen(kernel(NOW - 3, NOW - 2)) == {}


def test_of_what_was_not_traced_one_by_one_the_messages_are_known_and_not_the_time() -> None:
    found = seen(Slice(120, "", "blas", "untraced", NOW - 0.9, NOW - 0.1), kernel(NOW - 0.1, NOW))
    assert found["gpu0", "blas"] == (121.0, None)
    assert found["gpu0", ""] == (121.0, None)


def test_what_ended_with_its_context_was_busy_and_is_no_message_done() -> None:
    lost = Slice(1, "Gemm", "blas", "kernel", NOW - 0.5, NOW - 0.25, lost=True)
    assert seen(lost)["gpu0", "blas"] == (0.0, 0.25)


def test_of_more_messages_than_are_packed_the_rate_is_that_of_the_newest() -> None:
    step = 1 / (4 * PACKED)
    found = seen(*(kernel(NOW - n * step, NOW - n * step) for n in range(2 * PACKED, -1, -1)))
    assert found["gpu0", "blas"].rate == pytest.approx(4 * PACKED, rel=0.01)


def test_of_a_device_that_dropped_messages_nothing_is_said_for_a_while() -> None:
    scene = Scene()
    known = Loads()
    scene.add(work("gpu0", [kernel(NOW - 0.1, NOW)], dropped=7))
    scene.add(work("gpu1", [kernel(NOW - 0.1, NOW)]))
    assert set(known.look(scene, NOW, 0.0)) == {("gpu1", "blas"), ("gpu1", "")}
    scene.add(work("gpu0", [kernel(NOW + 1.9, NOW + 2)]))
    assert ("gpu0", "blas") in known.look(scene, NOW + 2, 0.0)


def test_a_look_back_tells_of_that_moment() -> None:
    scene = Scene()
    scene.add(work("gpu0", [kernel(NOW - 0.5, NOW - 0.25)]))
    scene.at = NOW
    assert loads(scene, Recorded(scene))["gpu0", "blas"] == (1.0, 0.25)


def test_the_tree_of_a_system_says_who_is_busy_and_how_much() -> None:
    with System("host", name="drawn").ready() as lab:
        view = tree(lab)
        a = lab.devices[0].put([[1.0, 2.0], [3.0, 4.0]])
        until = time.monotonic() + 20
        found: dict[str, Any] = {}
        while "busy" not in found or "rate" not in found:
            assert time.monotonic() < until
            for _ in range(20):
                blas.gemm(a, a).result()
            device = view.sample()["root"]["children"][0]
            found = next(one for one in device["children"][0]["children"] if one["name"] == "blas")
        assert 0 < found["busy"] <= device["busy"] <= 1
        assert 0 < found["rate"] <= device["rate"]
