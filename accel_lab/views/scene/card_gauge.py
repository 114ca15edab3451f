"""What a card says of itself through NVML: one reading a figure, with the reason for one missing.

NVML opens no CUDA context. Its names are those of the NVML API reference; the module `pynvml`
raises an `NVMLError` whose `value` is the code.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

from accel_lab.compute.events.samples import Reading

ALL_LINKS = 0xFFFFFFFF
"""The scope of a field that sums over all NVLinks."""
WHYS = {
    "NVML_ERROR_FUNCTION_NOT_FOUND": "the driver is too old",
    "NVML_ERROR_GPU_IS_LOST": "the card is lost",
    "NVML_ERROR_NOT_SUPPORTED": "not supported",
    "NVML_ERROR_NO_PERMISSION": "no permission",
}
SLOWING = {
    "nvmlClocksEventReasonSwPowerCap": "power cap",
    "nvmlClocksEventReasonHwSlowdown": "hardware slowdown",
    "nvmlClocksEventReasonSyncBoost": "sync boost",
    "nvmlClocksEventReasonSwThermalSlowdown": "too hot (software)",
    "nvmlClocksEventReasonHwThermalSlowdown": "too hot (hardware)",
    "nvmlClocksEventReasonHwPowerBrakeSlowdown": "power brake",
}
CALM = {
    "nvmlClocksEventReasonGpuIdle": "idle",
    "nvmlClocksEventReasonApplicationsClocksSetting": "clocks were set",
    "nvmlClocksEventReasonDisplayClockSetting": "clocks of the display",
}


class CardGauge:
    """Reads cards; remembers the counters of each, for the rate since then. One thread at a time.

    Parameters:
        nvml: the module to ask; `pynvml` when not given.
    """

    def __init__(self, nvml: Any = None) -> None:
        self._nvml = nvml
        self._is_open = False
        self._before: dict[tuple[int, str], tuple[float, int]] = {}

    def read(self, index: int) -> tuple[str, tuple[Reading, ...]]:
        """Return the model and the readings of a card, by its number among the visible ones.

        Blocks as long as the driver takes: 0.1 s, and for ever on a driver that hangs.
        """
        try:
            nvml = self._opened()
        except ImportError:
            return "", (Reading("card", None, why="nvidia-ml-py is missing"),)
        except self._nvml.NVMLError as error:
            return "", (Reading("card", None, why=f"no driver answers: {error}"),)
        try:
            handle = _handle(nvml, index)
            model = str(nvml.nvmlDeviceGetName(handle))
        except nvml.NVMLError as error:
            return "", (Reading("card", None, why=_why(nvml, error)),)
        return model, tuple(self._readings(nvml, handle, index))

    def _opened(self) -> Any:
        if self._nvml is None:
            self._nvml = import_module("pynvml")
        if not self._is_open:
            self._nvml.nvmlInit()
            self._is_open = True
        return self._nvml

    def _readings(self, nvml: Any, handle: Any, index: int) -> Iterator[Reading]:
        is_split = _is_split(nvml, handle)

        def ask(
            name: str,
            unit: str,
            value: Callable[[], float],
            limit: Callable[[], float] | float | None = None,
            means: str = "",
        ) -> Reading:
            try:
                found = value()
            except nvml.NVMLError as error:
                return Reading(name, None, unit, why=_why(nvml, error, is_split=is_split))
            if callable(limit):
                most, limit = limit, None
                with contextlib.suppress(nvml.NVMLError):
                    limit = most()
            return Reading(name, found, unit, limit, means)

        def rated(counter: int) -> float:
            return float(nvml.nvmlDeviceGetPcieThroughput(handle, counter) * 1000)

        yield ask(
            "utilisation",
            "%",
            lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
            100,
            "any kernel ran",
        )
        yield ask(
            "memory",
            "B",
            lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used,
            lambda: nvml.nvmlDeviceGetMemoryInfo(handle).total,
        )
        yield ask(
            "power",
            "W",
            lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
            lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000,
        )
        yield ask(
            "energy",
            "J",
            lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000,
            None,
            "since the driver was loaded",
        )
        slowdown = nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
        yield ask(
            "temperature",
            "°C",
            partial(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            partial(nvml.nvmlDeviceGetTemperatureThreshold, handle, slowdown),
        )
        yield ask("memory temperature", "°C", partial(_memory_temperature, nvml, handle))
        clocks = {"SM clock": nvml.NVML_CLOCK_SM, "memory clock": nvml.NVML_CLOCK_MEM}
        for name, clock in clocks.items():
            yield ask(
                name,
                "MHz",
                partial(nvml.nvmlDeviceGetClockInfo, handle, clock),
                partial(nvml.nvmlDeviceGetMaxClockInfo, handle, clock),
            )
        yield self._throttling(nvml, handle, is_split=is_split)
        errors = {
            "ECC corrected": nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED,
            "ECC uncorrected": nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        }
        for name, kind in errors.items():
            total = partial(nvml.nvmlDeviceGetTotalEccErrors, handle, kind, nvml.NVML_VOLATILE_ECC)
            yield ask(name, "", total, None, "since the driver was loaded")
        yield ask("remapped rows", "", lambda: sum(nvml.nvmlDeviceGetRemappedRows(handle)[:2]))
        yield ask("retired pages", "", partial(_retired, nvml, handle))
        yield ask("processes", "", lambda: len(nvml.nvmlDeviceGetComputeRunningProcesses(handle)))
        yield ask("MIG", "", lambda: nvml.nvmlDeviceGetMigMode(handle)[0], None, "1 is split")
        lanes = {"PCIe out": nvml.NVML_PCIE_UTIL_TX_BYTES, "PCIe in": nvml.NVML_PCIE_UTIL_RX_BYTES}
        for name, counter in lanes.items():
            yield ask(name, "B/s", partial(rated, counter), None, "over 20 ms")
        yield from self._links(nvml, handle, index, is_split=is_split)

    def _throttling(self, nvml: Any, handle: Any, *, is_split: bool) -> Reading:
        """Say in words why the clocks are not as high as they could be; the value counts them."""
        try:
            bits = nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
        except nvml.NVMLError as error:
            return Reading("throttling", None, why=_why(nvml, error, is_split=is_split))
        slowing = [words for name, words in SLOWING.items() if bits & getattr(nvml, name)]
        calm = [words for name, words in CALM.items() if bits & getattr(nvml, name)]
        return Reading("throttling", len(slowing), why=", ".join((*slowing, *calm)) or "none")

    def _links(self, nvml: Any, handle: Any, index: int, *, is_split: bool) -> Iterator[Reading]:
        """Yield the data rates over all NVLinks, from counters of KiB."""
        fields = {
            "NVLink out": nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
            "NVLink in": nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
        }
        try:
            wanted = [(field, ALL_LINKS) for field in fields.values()]
            values = nvml.nvmlDeviceGetFieldValues(handle, wanted)
        except nvml.NVMLError as error:
            why = _why(nvml, error, is_split=is_split)
            yield from (Reading(name, None, "B/s", why=why) for name in fields)
            return
        for name, value in zip(fields, values, strict=True):
            if value.nvmlReturn != 0:
                refusal = nvml.NVMLError(value.nvmlReturn)
                why = _why(nvml, refusal, is_split=is_split)
                yield Reading(name, None, "B/s", why=why)
            else:
                yield self._rate(name, index, 1024 * value.value.ullVal)

    def _rate(self, name: str, index: int, count: int) -> Reading:
        now = time.monotonic()
        before = self._before.get((index, name))
        self._before[index, name] = now, count
        if before is None or now <= before[0] or count < before[1]:
            return Reading(name, None, "B/s", why="it takes two samples")
        return Reading(name, (count - before[1]) / (now - before[0]), "B/s")


def _handle(nvml: Any, index: int) -> Any:
    """Return the card that a context of this number opens: CUDA_VISIBLE_DEVICES may choose."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return nvml.nvmlDeviceGetHandleByIndex(index)
    entry = chosen.split(",")[index].strip()
    if entry.isdecimal():
        return nvml.nvmlDeviceGetHandleByIndex(int(entry))
    return nvml.nvmlDeviceGetHandleByUUID(entry)


def _memory_temperature(nvml: Any, handle: Any) -> float:
    """Return the temperature of the card's memory, which is a field of its own."""
    (value,) = nvml.nvmlDeviceGetFieldValues(handle, [nvml.NVML_FI_DEV_MEMORY_TEMP])
    if value.nvmlReturn != 0:
        raise nvml.NVMLError(value.nvmlReturn)
    return float(value.value.uiVal)


def _retired(nvml: Any, handle: Any) -> int:
    """Return how many pages of memory are no longer used, for either kind of error."""
    causes = (
        nvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS,
        nvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR,
    )
    return sum(len(nvml.nvmlDeviceGetRetiredPages(handle, cause)) for cause in causes)


def _is_split(nvml: Any, handle: Any) -> bool:
    """Whether the card is split into instances (MIG), or is one: then it tells little."""
    with contextlib.suppress(nvml.NVMLError):
        if nvml.nvmlDeviceIsMigDeviceHandle(handle):
            return True
    with contextlib.suppress(nvml.NVMLError):
        return bool(nvml.nvmlDeviceGetMigMode(handle)[0])
    return False


def _why(nvml: Any, error: Any, *, is_split: bool = False) -> str:
    """Say in few words why there is no value."""
    names = {getattr(nvml, name): words for name, words in WHYS.items()}
    unknown = {nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_INVALID_ARGUMENT}
    if is_split and error.value in unknown:
        return "MIG"
    return names.get(error.value, str(error))
