"""Drivers and cards, as NVML tells of them."""

from types import SimpleNamespace

import pytest

from accel_lab.doctor.nvidia import Nvidia, nvidia
from tests.doctor.filing import by_name

GIB = 2**30


class NvmlError(Exception):
    """Stands for pynvml.NVMLError."""


class Nvml:
    """An NVML of a made-up machine; `lost` cards answer nothing."""

    NVMLError = NvmlError

    def __init__(self, *, cuda: int = 13000, cards: int = 1, lost: int | None = None) -> None:
        self.cuda = cuda
        self.cards = cards
        self.lost = lost
        self.is_open = False

    def nvmlInit(self) -> None:
        if not self.cuda:
            raise NvmlError("NVML Shared Library Not Found")
        self.is_open = True

    def nvmlShutdown(self) -> None:
        self.is_open = False

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.159.04"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return self.cuda

    def nvmlDeviceGetCount(self) -> int:
        return self.cards

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index == self.lost:
            raise NvmlError("GPU is lost")
        return index

    def nvmlDeviceGetName(self, handle: int) -> str:
        return f"NVIDIA H200 {handle}"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(total=(handle + 1) * 100 * GIB)

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:
        assert handle >= 0
        return (9, 0)

    def nvmlDeviceGetMigMode(self, handle: int) -> list[int]:
        if handle == 0:
            raise NvmlError("Not Supported")
        return [1, 1]


def ask(nvml: Nvml, monkeypatch: pytest.MonkeyPatch, visible: str | None = None) -> Nvidia:
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    answer = nvidia(nvml)
    assert not nvml.is_open
    return answer


def test_driver_and_cards_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = ask(Nvml(cards=2), monkeypatch)
    assert answer.cuda_version == (13, 0)
    named = by_name(answer.findings)
    assert named["driver"].found == "580.159.04, for CUDA up to 13.0"
    assert named["gpu0"].found == "NVIDIA H200 0, 100 GiB, compute capability 9.0"
    assert named["gpu1"].found == "NVIDIA H200 1, 200 GiB, compute capability 9.0, MIG on"
    assert named["gpu1"].size_bytes == 200 * GIB
    assert {finding.state for finding in answer.findings} == {"ok"}


def test_no_driver_blocks_cuda_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = ask(Nvml(cuda=0), monkeypatch)
    assert answer.cuda_version is None
    (driver,) = answer.findings
    assert driver.state == "missing"
    assert driver.blocks == ("cuda",)
    assert "NVML Shared Library Not Found" in driver.found


def test_driver_before_cuda_12_is_told_to_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = by_name(ask(Nvml(cuda=11080), monkeypatch).findings)["driver"]
    assert driver.state == "missing"
    assert "11.8" in driver.found
    assert driver.command


def test_lost_card_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    named = by_name(ask(Nvml(cards=2, lost=1), monkeypatch).findings)
    assert named["gpu0"].state == "ok"
    assert named["gpu1"].state == "missing"
    assert named["gpu1"].blocks == ()
    assert by_name(ask(Nvml(cards=1, lost=0), monkeypatch).findings)["gpu0"].blocks == ("cuda",)


def test_driver_without_a_card_blocks_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    assert by_name(ask(Nvml(cards=0), monkeypatch).findings)["gpu0"].blocks == ("cuda",)


@pytest.mark.parametrize(("visible", "blocks"), [("", ("cuda",)), ("-1", ("cuda",)), ("1", ())])
def test_hidden_cards_are_pointed_out(
    monkeypatch: pytest.MonkeyPatch, visible: str, blocks: tuple[str, ...]
) -> None:
    hidden = by_name(ask(Nvml(), monkeypatch, visible).findings)["CUDA_VISIBLE_DEVICES"]
    assert hidden.blocks == blocks
    assert hidden.command == "unset CUDA_VISIBLE_DEVICES"
