"""What the doctor says of adapters."""

import pytest

from accel_lab.doctor import webgpu
from tests.conftest import require


def test_each_adapter_tells_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    require("wgpu")
    monkeypatch.setattr(webgpu, "may_have_hardware", lambda: True)
    found = list(webgpu.webgpu())
    assert found[0].name == "wgpu0"
    assert "a buffer has at most" in found[0].found
    assert 'fallback="host"' in found[0].found


def test_without_a_gpu_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    require("wgpu")
    monkeypatch.setattr(webgpu, "may_have_hardware", lambda: False)
    monkeypatch.setattr(webgpu, "adapters", None)
    assert [one.name for one in webgpu.webgpu()] == ["wgpu"]
