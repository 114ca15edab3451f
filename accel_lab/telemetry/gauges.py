"""What is measured of a system as OpenTelemetry's metrics, under the names of the dashboard's."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from accel_lab.telemetry import names
from accel_lab.views.scene.scene import Scene
from accel_lab.views.tallies.device_metrics import (
    CIRCUIT,
    Measured,
    Metric,
    circuit_of,
    devices_in,
    newest_health,
    of_device,
    of_health,
)

CIRCUIT_METRIC = Metric("accel_lab.circuit", "", "Whether it takes messages: 1 for its state")


def measured_of(scene: Scene, losses: dict[str, int]) -> list[Measured]:
    """Return what is measured of all devices, cards and processes of a scene."""
    devices = [one for node in devices_in(scene) for one in of_device(node, losses, scene.untraced)]
    return [*devices, *of_health(newest_health(scene))]


class Gauges:
    """Instruments that read the newest values; a new metric gets its own when it is first seen.

    `update` is for the thread that looks; the callbacks are called by the SDK's, and read values
    that are replaced, never changed.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._values: dict[str, list[tuple[float, dict[str, Any]]]] = {}
        self._known: set[str] = set()

    def update(self, scene: Scene, losses: dict[str, int]) -> None:
        """Take the values of a scene."""
        values: dict[str, list[tuple[float, dict[str, Any]]]] = {}
        for metric, source, value in measured_of(scene, losses):
            values.setdefault(metric.name, []).append((value, {names.SOURCE: source}))
            self._instrument(metric)
        circuits = values.setdefault(CIRCUIT_METRIC.name, [])
        for node in devices_in(scene):
            state = circuit_of(node)
            for one in CIRCUIT:
                attributes = {names.SOURCE: node.name, names.STATE: one}
                circuits.append((float(one == state), attributes))
        self._instrument(CIRCUIT_METRIC)
        self._values = values

    def _instrument(self, metric: Metric) -> None:
        if metric.name in self._known:
            return
        self._known.add(metric.name)
        make: Callable[..., Any] = self._meter.create_observable_gauge
        if metric.kind == "counter":
            make = self._meter.create_observable_counter

        def read(_: CallbackOptions) -> Iterable[Observation]:
            return self._read(metric.name)

        make(metric.name, callbacks=[read], unit=metric.unit, description=metric.says)

    def _read(self, name: str) -> Iterator[Observation]:
        for value, attributes in self._values.get(name, ()):
            yield Observation(value, attributes)
