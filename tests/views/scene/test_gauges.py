# ruff: noqa: N802, N815 - NVML's own names
"""Readings of processes from /proc, and of cards from a made-up NVML: no card is needed."""

import os
import re
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accel_lab import System
from accel_lab.compute.events.samples import Reading
from accel_lab.compute.events.tree import Node
from accel_lab.views.scene import gauges as module
from accel_lab.views.scene.card_gauge import CALM, SLOWING, CardGauge
from accel_lab.views.scene.gauges import Gauges
from accel_lab.views.scene.observer import EVERY_S, Observer
from accel_lab.views.scene.process_gauge import ProcessGauge

GIB = 2**30


class NvmlError(Exception):
    """Stands for pynvml.NVMLError."""

    def __init__(self, value: int) -> None:
        super().__init__(f"code {value}")
        self.value = value


class Nvml:
    """An NVML of a made-up card, with pynvml's names and codes; the `refused` raise one."""

    NVMLError = NvmlError
    NVML_ERROR_INVALID_ARGUMENT = 2
    NVML_ERROR_NOT_SUPPORTED = 3
    NVML_ERROR_NO_PERMISSION = 4
    NVML_ERROR_FUNCTION_NOT_FOUND = 13
    NVML_ERROR_GPU_IS_LOST = 15
    NVML_TEMPERATURE_GPU = 0
    NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_MEMORY_ERROR_TYPE_CORRECTED = 0
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0
    NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS = 0
    NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR = 1
    NVML_FI_DEV_MEMORY_TEMP = 82
    NVML_PCIE_UTIL_TX_BYTES = 0
    NVML_PCIE_UTIL_RX_BYTES = 1
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX = 138
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = 139
    nvmlClocksEventReasonGpuIdle = 0x1
    nvmlClocksEventReasonApplicationsClocksSetting = 0x2
    nvmlClocksEventReasonSwPowerCap = 0x4
    nvmlClocksEventReasonHwSlowdown = 0x8
    nvmlClocksEventReasonSyncBoost = 0x10
    nvmlClocksEventReasonSwThermalSlowdown = 0x20
    nvmlClocksEventReasonHwThermalSlowdown = 0x40
    nvmlClocksEventReasonHwPowerBrakeSlowdown = 0x80
    nvmlClocksEventReasonDisplayClockSetting = 0x100

    def __init__(self, **refused: int) -> None:
        self.refused = refused
        self.reasons = 0
        self.remapped = 2
        self.mig = 0
        self.sent_kib = 1000
        self.link_code = 0
        self.hot_code = 0
        self.opened = 0
        self.asked: list[object] = []
        self.gate = threading.Event()
        self.gate.set()

    def nvmlInit(self) -> None:
        self._answer("nvmlInit")
        self.opened += 1

    def _answer(self, function: str, value: Any = None) -> Any:
        if function in self.refused:
            raise NvmlError(self.refused[function])
        return value

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        self.asked.append(index)
        return self._answer("nvmlDeviceGetHandleByIndex", f"card {index}")  # type: ignore[no-any-return]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        self.asked.append(uuid)
        return f"card {uuid}"

    def nvmlDeviceGetName(self, handle: str) -> str:
        self.gate.wait(20)
        assert handle.startswith("card")
        return "NVIDIA H200"

    def nvmlDeviceIsMigDeviceHandle(self, handle: str) -> int:
        return int(handle.startswith("card MIG-"))

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:
        assert handle
        return self._answer("nvmlDeviceGetMigMode", [self.mig, self.mig])  # type: ignore[no-any-return]

    def nvmlDeviceGetUtilizationRates(self, _: str) -> Any:
        return self._answer("nvmlDeviceGetUtilizationRates", SimpleNamespace(gpu=43, memory=7))

    def nvmlDeviceGetMemoryInfo(self, _: str) -> Any:
        return SimpleNamespace(used=12 * GIB, total=141 * GIB)

    def nvmlDeviceGetPowerUsage(self, _: str) -> int:
        return self._answer("nvmlDeviceGetPowerUsage", 312_400)  # type: ignore[no-any-return]

    def nvmlDeviceGetEnforcedPowerLimit(self, _: str) -> int:
        return self._answer("nvmlDeviceGetEnforcedPowerLimit", 700_000)  # type: ignore[no-any-return]

    def nvmlDeviceGetTemperature(self, _: str, sensor: int) -> int:
        assert sensor == self.NVML_TEMPERATURE_GPU
        return 61

    def nvmlDeviceGetTemperatureThreshold(self, _: str, kind: int) -> int:
        assert kind == self.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
        return 90

    def nvmlDeviceGetClockInfo(self, _: str, clock: int) -> int:
        return {1: 1800, 2: 3201}[clock]

    def nvmlDeviceGetMaxClockInfo(self, _: str, clock: int) -> int:
        return {1: 1980, 2: 3201}[clock]

    def nvmlDeviceGetCurrentClocksEventReasons(self, _: str) -> int:
        return self._answer("nvmlDeviceGetCurrentClocksEventReasons", self.reasons)  # type: ignore[no-any-return]

    def nvmlDeviceGetTotalEccErrors(self, _: str, kind: int, counter: int) -> int:
        assert counter == self.NVML_VOLATILE_ECC
        return self._answer("nvmlDeviceGetTotalEccErrors", {0: 5, 1: 0}[kind])  # type: ignore[no-any-return]

    def nvmlDeviceGetTotalEnergyConsumption(self, _: str) -> int:
        return self._answer("nvmlDeviceGetTotalEnergyConsumption", 5_250_000)  # type: ignore[no-any-return]

    def nvmlDeviceGetRemappedRows(self, _: str) -> tuple[int, int, int, int]:
        return self._answer("nvmlDeviceGetRemappedRows", (1, self.remapped, 9, 9))  # type: ignore[no-any-return]

    def nvmlDeviceGetRetiredPages(self, _: str, cause: int) -> list[int]:
        return self._answer("nvmlDeviceGetRetiredPages", [[1, 2], [3]][cause])  # type: ignore[no-any-return]

    def nvmlDeviceGetComputeRunningProcesses(self, _: str) -> list[Any]:
        return [SimpleNamespace(pid=1), SimpleNamespace(pid=2)]

    def nvmlDeviceGetPcieThroughput(self, _: str, counter: int) -> int:
        return {0: 2000, 1: 3000}[counter]  # kB/s

    def nvmlDeviceGetFieldValues(self, _: str, fields: list[Any]) -> list[Any]:
        if fields == [82]:
            return [SimpleNamespace(nvmlReturn=self.hot_code, value=SimpleNamespace(uiVal=77))]
        assert [scope for _, scope in fields] == [0xFFFFFFFF] * 2
        self._answer("nvmlDeviceGetFieldValues")
        counts = {138: self.sent_kib, 139: 0}
        return [
            SimpleNamespace(nvmlReturn=self.link_code, value=SimpleNamespace(ullVal=counts[field]))
            for field, _ in fields
        ]


@pytest.fixture(autouse=True)
def _no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def read(nvml: Any, index: int = 0) -> dict[str, Reading]:
    return {reading.name: reading for reading in CardGauge(nvml).read(index)[1]}


def test_a_card_tells_every_figure_with_its_unit_and_limit() -> None:
    nvml = Nvml()
    gauge = CardGauge(nvml)
    model, readings = gauge.read(2)
    assert (model, nvml.asked) == ("NVIDIA H200", [2])
    assert list(readings) == [
        Reading("utilisation", 43, "%", 100, "any kernel ran"),
        Reading("memory", 12 * GIB, "B", 141 * GIB),
        Reading("power", 312.4, "W", 700.0),
        Reading("energy", 5250.0, "J", why="since the driver was loaded"),
        Reading("temperature", 61, "°C", 90),
        Reading("memory temperature", 77, "°C"),
        Reading("SM clock", 1800, "MHz", 1980),
        Reading("memory clock", 3201, "MHz", 3201),
        Reading("throttling", 0, why="none"),
        Reading("ECC corrected", 5, why="since the driver was loaded"),
        Reading("ECC uncorrected", 0, why="since the driver was loaded"),
        Reading("remapped rows", 3),
        Reading("retired pages", 3),
        Reading("processes", 2),
        Reading("MIG", 0, why="1 is split"),
        Reading("PCIe out", 2_000_000.0, "B/s", why="over 20 ms"),
        Reading("PCIe in", 3_000_000.0, "B/s", why="over 20 ms"),
        Reading("NVLink out", None, "B/s", why="it takes two samples"),
        Reading("NVLink in", None, "B/s", why="it takes two samples"),
    ]
    gauge.read(2)
    assert nvml.opened == 1


def test_what_a_card_has_not_is_n_a_with_the_reason() -> None:
    refused = dict.fromkeys(("nvmlDeviceGetRemappedRows", "nvmlDeviceGetRetiredPages"), 3)
    nvml = Nvml(**refused, nvmlDeviceGetTotalEnergyConsumption=13)
    nvml.hot_code = 3
    found = read(nvml)
    for name in ("remapped rows", "retired pages", "memory temperature"):
        assert (found[name].value, found[name].why) == (None, "not supported"), name
    assert found["energy"].why == "the driver is too old"


def test_nvlink_is_a_rate_between_two_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([100.0, 100.0, 102.0, 102.0, 103.0, 103.0])
    mine, true = threading.get_ident(), time.monotonic  # other threads have the true time
    told = lambda: next(now) if threading.get_ident() == mine else true()  # noqa: E731
    monkeypatch.setattr(time, "monotonic", told)
    nvml = Nvml()
    gauge = CardGauge(nvml)
    gauge.read(0)
    nvml.sent_kib += 4096
    *_, sent, received = gauge.read(0)[1]
    assert sent == Reading("NVLink out", 2048 * 1024, "B/s")
    assert received == Reading("NVLink in", 0.0, "B/s")
    nvml.sent_kib = 0  # the driver was loaded anew
    assert gauge.read(0)[1][-2].value is None


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (3, "not supported"),
        (4, "no permission"),
        (13, "the driver is too old"),
        (15, "the card is lost"),
        (999, "code 999"),
    ],
)
def test_a_missing_value_says_why_and_is_no_zero(code: int, why: str) -> None:
    functions = (
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetTotalEccErrors",
        "nvmlDeviceGetFieldValues",
    )
    found = read(Nvml(**dict.fromkeys(functions, code)))
    missing = {name: reading.why for name, reading in found.items() if reading.value is None}
    assert missing == dict.fromkeys(
        (
            "utilisation",
            "power",
            "throttling",
            "ECC corrected",
            "ECC uncorrected",
            "NVLink out",
            "NVLink in",
        ),
        why,
    )
    assert found["memory"].value == 12 * GIB


def test_a_limit_that_is_not_known_costs_no_value() -> None:
    power = read(Nvml(nvmlDeviceGetEnforcedPowerLimit=3))["power"]
    assert power == Reading("power", 312.4, "W", None)


def test_a_link_that_is_not_there_says_so() -> None:
    nvml = Nvml()
    nvml.link_code = 3
    assert read(nvml)["NVLink out"].why == "not supported"


def test_a_card_in_instances_says_mig(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = Nvml(nvmlDeviceGetUtilizationRates=3, nvmlDeviceGetPowerUsage=4)
    nvml.mig = 1
    found = read(nvml)
    assert (found["utilisation"].value, found["utilisation"].why) == (None, "MIG")
    assert found["power"].why == "no permission"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-5c3f")
    nvml = Nvml(nvmlDeviceGetUtilizationRates=2, nvmlDeviceGetMigMode=3)
    assert read(nvml)["utilisation"].why == "MIG"
    assert nvml.asked == ["MIG-5c3f"]


def test_throttling_is_told_in_words_and_counts_what_slows() -> None:
    nvml = Nvml()
    nvml.reasons = 0x1
    assert read(nvml)["throttling"] == Reading("throttling", 0, why="idle")
    nvml.reasons = 0x2 | 0x4 | 0x40
    assert read(nvml)["throttling"] == Reading(
        "throttling", 2, why="power cap, too hot (hardware), clocks were set"
    )


def test_every_reason_is_one_that_nvml_names() -> None:
    pynvml = pytest.importorskip("pynvml")
    for name in (*SLOWING, *CALM):
        assert getattr(pynvml, name) == getattr(Nvml, name)
    for name in vars(Nvml):
        if name.startswith("NVML_"):
            assert getattr(pynvml, name) == getattr(Nvml, name)
        elif name.startswith("nvml") and callable(getattr(Nvml, name)):
            assert callable(getattr(pynvml, name))


def test_the_cards_that_cuda_shows_are_the_ones_that_are_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, GPU-0a1b")
    nvml = Nvml()
    read(nvml, 0)
    read(nvml, 1)
    assert nvml.asked == [3, "GPU-0a1b"]


def test_no_driver_and_a_lost_card_are_one_reading_with_the_reason() -> None:
    assert read(Nvml(nvmlInit=12))["card"].why == "no driver answers: code 12"
    assert read(Nvml(nvmlDeviceGetHandleByIndex=15))["card"].why == "the card is lost"


# Processes.


def test_a_process_has_its_share_of_a_core_and_its_memory() -> None:
    gauge = ProcessGauge()
    cpu, memory = gauge.read(os.getpid())
    assert cpu.value is not None
    assert cpu.why == "100 % a core, so far"
    assert cpu.limit == 100 * len(os.sched_getaffinity(0))
    assert memory.value is not None
    assert 10 * 2**20 < memory.value < (memory.limit or 0)
    end = time.process_time() + 0.5
    while time.process_time() < end:
        pass
    cpu, _ = gauge.read(os.getpid())
    assert cpu.value is not None
    assert cpu.value > 5  # it was busy all the time, on a machine that others share
    assert cpu.why == "100 % a core"


def test_the_share_is_what_was_used_since_the_last_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    (tmp_path / "7").mkdir()

    def tell(user: float, system: float) -> None:
        counts = [0] * 11 + [int(user * ticks), int(system * ticks)] + [0] * 6 + [0, 0, 100]
        (tmp_path / "7" / "stat").write_text(
            f"7 (a name) with (brackets) S {' '.join(map(str, counts[1:]))}\n"
        )

    now = [50.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    gauge = ProcessGauge(tmp_path)
    tell(1.0, 0.0)
    gauge.read(7)
    tell(2.0, 0.5)
    now[0] += 1.0
    cpu, memory = gauge.read(7)
    assert cpu.value == 150.0
    assert memory.value == 100 * page


def test_a_process_that_is_gone_or_not_there_is_no_zero(tmp_path: Path) -> None:
    gauge = ProcessGauge(tmp_path)
    assert [(r.value, r.why) for r in gauge.read(7)] == [(None, "process 7 is gone")] * 2
    assert [(r.value, r.why) for r in gauge.read(None)] == [(None, "there is no process now")] * 2


# All of them.


def tree(*devices: str) -> Node:
    return Node(
        name="lab",
        path="lab",
        kind="system",
        state="running",
        children=tuple(
            Node(
                name=name,
                path=f"lab/{name}",
                kind="device",
                state="running",
                children=(
                    Node(
                        name="context",
                        path=f"lab/{name}/context",
                        kind="context",
                        state="running",
                        pid=os.getpid(),
                    ),
                ),
            )
            for name in devices
        ),
    )


def test_a_card_and_its_process_are_one_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_S", 20.0)
    monkeypatch.setattr("sys.argv", ["/home/me/train.py"])
    notebook, card = Gauges(Nvml()).look(tree("gpu0"), "cuda")
    assert (notebook.source, notebook.model) == (
        "notebook",
        f"train.py, process {os.getpid()}",
    ), "a page may be watching from another process"
    assert [reading.name for reading in notebook.readings] == ["process CPU", "process memory"]
    assert (card.source, card.model) == ("gpu0", f"NVIDIA H200, context process {os.getpid()}")
    assert [card.readings[0].name, card.readings[-1].name] == ["utilisation", "process memory"]


def test_the_host_backend_asks_no_card() -> None:
    nvml = Nvml()
    _, device = Gauges(nvml).look(tree("cpu0"), "host")
    assert nvml.opened == 0
    assert [reading.name for reading in device.readings] == ["process CPU", "process memory"]


def test_a_driver_that_hangs_holds_nobody_up_and_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "FIRST_S", 0.01)
    nvml = Nvml()
    nvml.gate.clear()
    gauges = Gauges(nvml)

    def why() -> str:
        return gauges.look(tree("gpu0"), "cuda")[1].readings[0].why

    try:
        assert why() == "not read yet"
        gauges._began -= 100  # as after so many seconds
        assert re.fullmatch(r"the driver has not answered for 1\d\d s", why())
        assert sum(t.name == "accel_lab health" for t in threading.enumerate()) == 1
    finally:
        nvml.gate.set()
    end = time.monotonic() + 10
    while why() != "any kernel ran":
        assert time.monotonic() < end


def test_a_real_system_is_sampled_while_somebody_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EVERY_S, "health", 600.0)
    with System("host", devices=2) as lab:
        observer = Observer(lab)
        with observer.lock:
            assert not observer.look().health
        holder = threading.Event()  # anything that lives
        observer.want(holder, ["health"])
        with observer.lock:
            health = observer.look().health
            assert observer.look().health is health  # not with every look
        assert {source: len(samples) for source, samples in health.items()} == {
            "notebook": 1,
            "cpu0": 1,
            "cpu1": 1,
        }
        pid = lab.tree().children[0].children[0].pid
        assert health["cpu0"][0].model == f"context process {pid}"
        assert all(reading.value is not None for reading in health["cpu0"][0].readings)
