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

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SYSTEM = ("system", "program", "pid")
_DEVICE = (*_SYSTEM, "device")
_CIRCUIT = ("closed", "half-open", "open")


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
            tree, losses, untraced = scene.tree, dict(one.losses), dict(scene.untraced)
        for node in tree.children if tree is not None else ():
            if node.kind == "device":
                devices.add((*labels, node.name), node, losses, untraced)
    return chain((up, silence, lost), devices.families)


class _Devices:
    """What is told of each device."""

    def __init__(self) -> None:
        def gauge(name: str, what: str) -> Any:
            return GaugeMetricFamily(f"accel_lab_{name}", what, labels=_DEVICE)

        def counter(name: str, what: str) -> Any:
            return CounterMetricFamily(f"accel_lab_{name}", what, labels=_DEVICE)

        self.generation = gauge("generation", "The generation of its buffers")
        self.restarts = counter("restarts", "Contexts that replaced another")
        self.losses = counter("context_losses", "Contexts lost since the dashboard watches")
        self.in_flight = gauge("in_flight", "Messages begun and not yet answered")
        self.mailbox = gauge("mailbox", "Messages that wait to be begun")
        self.used = gauge("memory_used_bytes", "Memory that buffers hold")
        self.total = gauge("memory_total_bytes", "Memory that buffers can hold")
        self.untraced = counter("untraced", "Finished work that was too much to be told")
        self.circuit = StateSetMetricFamily(
            "accel_lab_circuit", "Whether it takes messages: 1 for its state", labels=_DEVICE
        )

    @property
    def families(self) -> list[Metric]:
        """All of them."""
        return list(vars(self).values())

    def add(
        self,
        labels: tuple[str, ...],
        node: Node,
        losses: dict[str, int],
        untraced: dict[str, int],
    ) -> None:
        """Tell of one device."""
        state = {"circuit open": "open", "half-open": "half-open"}.get(node.state, "closed")
        self.restarts.add_metric(labels, node.restarts)
        self.losses.add_metric(labels, losses.get(node.name, 0))
        self.in_flight.add_metric(labels, node.in_flight)
        self.mailbox.add_metric(labels, node.mailbox)
        self.untraced.add_metric(labels, untraced.get(node.name, 0))
        self.circuit.add_metric(labels, {one: one == state for one in _CIRCUIT})
        for family, value in (
            (self.generation, node.generation),
            (self.used, node.used_bytes),
            (self.total, node.total_bytes),
        ):
            if value is not None:
                family.add_metric(labels, value)
