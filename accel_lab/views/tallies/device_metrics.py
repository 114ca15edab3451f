"""What is measured of each device, under the names that Prometheus, OpenTelemetry and SQL share.

A name is OpenTelemetry's, as `accel_lab.memory.used` in `By`. Prometheus' is made of it by the rule
of the OpenTelemetry specification: `accel_lab_memory_used_bytes`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from accel_lab.compute.events.samples import HealthSampled, Reading
from accel_lab.compute.events.tree import Node
from accel_lab.views.scene.gauges import NOTEBOOK
from accel_lab.views.scene.scene import Scene

CIRCUIT = ("closed", "half-open", "open")
_SUFFIXES = {
    "By": "bytes",
    "By/s": "bytes_per_second",
    "Cel": "celsius",
    "Hz": "hertz",
    "J": "joules",
    "W": "watts",
    "s": "seconds",
    "1": "ratio",
}


class Metric(NamedTuple):
    """A quantity.

    Attributes:
        name: as OpenTelemetry spells it.
        unit: as UCUM does; empty for a count.
        says: what it is, in a few words.
        kind: a counter never falls while its system lives.
    """

    name: str
    unit: str
    says: str
    kind: Literal["gauge", "counter"] = "gauge"

    @property
    def prometheus(self) -> str:
        """The name in Prometheus, without the `_total` of a counter."""
        suffix = _SUFFIXES.get(self.unit, "")
        return "_".join(filter(None, (self.name.replace(".", "_"), suffix)))


class Measured(NamedTuple):
    """One value of a metric; `source` is a device's name, or "notebook"."""

    metric: Metric
    source: str
    value: float


GENERATION = Metric("accel_lab.generation", "", "The generation of its buffers")
RESTARTS = Metric("accel_lab.restarts", "", "Contexts that replaced another", "counter")
LOSSES = Metric(
    "accel_lab.context_losses", "", "Contexts lost since the dashboard watches", "counter"
)
IN_FLIGHT = Metric("accel_lab.in_flight", "", "Messages begun and not yet answered")
MAILBOX = Metric("accel_lab.mailbox", "", "Messages that wait to be begun")
USED = Metric("accel_lab.memory.used", "By", "Memory that buffers hold")
TOTAL = Metric("accel_lab.memory.total", "By", "Memory that buffers can hold")
UNTRACED = Metric("accel_lab.untraced", "", "Finished work that was too much to be told", "counter")
OF_DEVICES = (GENERATION, RESTARTS, LOSSES, IN_FLIGHT, MAILBOX, USED, TOTAL, UNTRACED)

_SCALES: dict[str, tuple[str, float]] = {
    "B": ("By", 1.0),
    "B/s": ("By/s", 1.0),
    "%": ("1", 0.01),
    "°C": ("Cel", 1.0),
    "MHz": ("Hz", 1e6),
    "W": ("W", 1.0),
    "J": ("J", 1.0),
    "": ("", 1.0),
}


def circuit_of(node: Node) -> str:
    """Return in which state a device's circuit is, one of CIRCUIT."""
    return {"circuit open": "open", "half-open": "half-open"}.get(node.state, "closed")


def devices_in(scene: Scene) -> Iterator[Node]:
    """Yield the devices of a scene."""
    for node in scene.tree.children if scene.tree is not None else ():
        if node.kind == "device":
            yield node


def of_device(
    node: Node, losses: Mapping[str, int], untraced: Mapping[str, int]
) -> Iterator[Measured]:
    """Yield what is known of one device.

    Parameters:
        losses: how many contexts each has lost.
        untraced: how many messages of each were never seen.
    """
    values: tuple[tuple[Metric, float | None], ...] = (
        (GENERATION, node.generation),
        (RESTARTS, node.restarts),
        (LOSSES, losses.get(node.name, 0)),
        (IN_FLIGHT, node.in_flight),
        (MAILBOX, node.mailbox),
        (USED, node.used_bytes),
        (TOTAL, node.total_bytes),
        (UNTRACED, untraced.get(node.name, 0)),
    )
    for metric, value in values:
        if value is not None:
            yield Measured(metric, node.name, value)


def of_health(samples: Iterable[HealthSampled]) -> Iterator[Measured]:
    """Yield the readings of cards and processes; what is missing is left out."""
    for sample in samples:
        for reading in sample.readings:
            if reading.value is not None:
                metric, scale = _metric_of(sample.source, reading)
                yield Measured(metric, sample.source, reading.value * scale)


def newest_health(scene: Scene) -> Iterator[HealthSampled]:
    """Yield the newest sample of each card and process."""
    for samples in scene.health.values():
        yield samples[-1]


def _metric_of(source: str, reading: Reading) -> tuple[Metric, float]:
    """Return under which metric a reading goes, and by what it is multiplied."""
    unit, scale = _SCALES.get(reading.unit, ("", 1.0))
    words = reading.name.lower().split()
    of_process = source == NOTEBOOK or words[0] == "process"
    of = "process" if of_process else "card"
    name = "_".join(word for word in words if word != "process")
    return Metric(
        f"accel_lab.{of}.{name}", unit, f"{reading.name}, as the health view has it"
    ), scale
