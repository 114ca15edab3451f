"""The systems of a dashboard as metrics, in the text that Prometheus reads."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from prometheus_client import generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    StateSetMetricFamily,
)

from accel_lab.compute.events.tree import Node
from accel_lab.views.dashboard.watched import Watched
from accel_lab.views.tallies.device_metrics import (
    CIRCUIT,
    OF_DEVICES,
    Measured,
    circuit_of,
    devices_in,
    newest_health,
    of_device,
    of_health,
)
from accel_lab.views.tallies.device_metrics import Metric as Quantity

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SYSTEM = ("system", "program", "pid")
_DEVICE = (*_SYSTEM, "device")


def exposition(systems: Iterable[Watched]) -> bytes:
    """Return what is known of the systems now; any thread, does not wait for a device.

    Of a system that has ended, or was recorded, there is `accel_lab_up 0`, as long as the dashboard
    shows it.
    """
    families = list(_families(list(systems)))

    class Known:
        def collect(self) -> list[Metric]:
            return families

    text: bytes = generate_latest(Known())
    return text


def _families(systems: list[Watched]) -> Iterator[Metric]:
    up = GaugeMetricFamily("accel_lab_up", "Whether the system runs", labels=_SYSTEM)
    silence = GaugeMetricFamily(
        "accel_lab_silence_seconds", "How long its process has said nothing", labels=_SYSTEM
    )
    lost = CounterMetricFamily(
        "accel_lab_feed_samples_lost",
        "Samples that its process dropped because the dashboard read too slowly",
        labels=_SYSTEM,
    )
    devices = _Devices()
    named: Counter[tuple[str, ...]] = Counter()
    for one in sorted(systems, key=lambda one: (one.ended, one.opened)):
        labels = (one.name, one.speaker.program, str(one.speaker.pid))
        named[labels] += 1
        runs = not (one.ended or one.recorded)
        if (count := named[labels]) > 1:  # a series is told once
            if not runs:
                continue
            labels = (f"{one.name} ({count})", *labels[1:])
        up.add_metric(labels, 1 if runs else 0)
        if not runs:
            continue
        silence.add_metric(labels, round(one.silent_s, 3))
        lost.add_metric(labels, one.lost)
        with one.lock:
            scene = one.look()
            for node in devices_in(scene):
                devices.add(labels, of_device(node, one.losses, scene.untraced))
                devices.add_circuit(labels, node)
            devices.add(labels, of_health(newest_health(scene)))
    return chain((up, silence, lost), devices.families)


class _Devices:
    """What is told of each device."""

    def __init__(self) -> None:
        self._families: dict[str, Any] = {}
        self._circuit = StateSetMetricFamily(
            "accel_lab_circuit", "Whether it takes messages: 1 for its state", labels=_DEVICE
        )
        for metric in OF_DEVICES:
            self._family(metric)

    @property
    def families(self) -> list[Metric]:
        """All of them."""
        return [*self._families.values(), self._circuit]

    def add(self, labels: tuple[str, ...], measured: Iterable[Measured]) -> None:
        """Tell of the devices of one system, and of its process."""
        for metric, source, value in measured:
            self._family(metric).add_metric((*labels, source), value)

    def add_circuit(self, labels: tuple[str, ...], node: Node) -> None:
        """Tell whether one device takes messages."""
        state = circuit_of(node)
        self._circuit.add_metric((*labels, node.name), {one: one == state for one in CIRCUIT})

    def _family(self, metric: Quantity) -> Any:
        name = metric.prometheus
        if name not in self._families:
            kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            self._families[name] = kind(name, metric.says, labels=_DEVICE)
        return self._families[name]
