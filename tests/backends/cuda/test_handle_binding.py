"""A vendor's handle follows the active stream; no CUDA needed."""

from types import SimpleNamespace
from typing import Any

import pytest

from accel_lab.backends.cuda.handles.binding import HandleBinding


@pytest.fixture
def calls() -> list[tuple[str, Any]]:
    return []


def bound(calls: list[tuple[str, Any]], device: Any) -> HandleBinding:
    return HandleBinding(
        device, lambda ptr: calls.append(("put", ptr)), lambda on: calls.append(("on device", on))
    )


def test_a_handle_is_put_on_a_stream_when_that_has_changed(calls: list[tuple[str, Any]]) -> None:
    one, two = SimpleNamespace(ptr=1), SimpleNamespace(ptr=2)
    device = SimpleNamespace(active=one)
    binding = bound(calls, device)
    for stream in (one, one, two, two, one):
        device.active = stream
        binding.bind()
    assert calls == [("put", 1), ("put", 2), ("put", 1)]


def test_a_handle_that_could_not_be_put_is_tried_again(calls: list[tuple[str, Any]]) -> None:
    def put(ptr: int) -> None:
        calls.append(("put", ptr))
        if len(calls) == 1:
            raise RuntimeError("of a test")

    device: Any = SimpleNamespace(active=SimpleNamespace(ptr=1))
    binding = HandleBinding(device, put)
    with pytest.raises(RuntimeError, match="of a test"):
        binding.bind()
    binding.bind()
    binding.bind()
    assert calls == [("put", 1)] * 2


def test_numbers_are_on_the_host_again_whatever_the_call_raises(
    calls: list[tuple[str, Any]],
) -> None:
    binding = bound(calls, SimpleNamespace(active=SimpleNamespace(ptr=1)))

    def call() -> None:
        with binding.numbers_on_device():
            calls.append(("call", None))
            raise RuntimeError("of a call")

    with pytest.raises(RuntimeError, match="of a call"):
        call()
    assert calls == [("put", 1), ("on device", True), ("call", None), ("on device", False)]
