"""Sends what happens in a system to an OpenTelemetry collector, over OTLP/HTTP."""

import atexit
import os
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext, suppress
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Self

from accel_lab.actor.events import Event
from accel_lab.compute.events.lifecycle import ContextLost
from accel_lab.compute.events.samples import SystemEnded
from accel_lab.errors import InvalidArgument
from accel_lab.telemetry import names
from accel_lab.telemetry.installed import require
from accel_lab.uncopied import Uncopied
from accel_lab.views.past.recording import Recording
from accel_lab.views.scene.observer import Lab, Observer, observer_of
from accel_lab.views.scene.process_gauge import program
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.publisher import DEFAULT_HZ, PUBLISHER, check_rate

if TYPE_CHECKING:
    from accel_lab.telemetry.pipeline import Signals

A_LOOK_S = 0.02
"""Facts of a recording that are further apart are of two looks."""


class Export(Uncopied):
    """Spans, log records and metrics of one system, on their way to a collector.

    It goes on until the system is closed, or this. Leaving the `with` block closes it.
    """

    _instead = "call otlp() where you need another"

    def __init__(self, name: str, scene: Scene, signals: "Signals", *, code: bool) -> None:
        from accel_lab.telemetry.gauges import Gauges
        from accel_lab.telemetry.logs import Logs
        from accel_lab.telemetry.spans import Spans

        self.name = name
        self.ended = False
        self._process = os.getpid()
        self._signals = signals
        meter = signals.metrics.get_meter("accel_lab")
        durations = meter.create_histogram(
            names.DURATION, unit="s", description="How long a message took on its device"
        )
        notebook = signals.traces.get_tracer("accel_lab")
        self._spans = Spans(scene, name, notebook, signals.provider, durations, code=code)
        self._logs = Logs(signals.logs.get_logger("accel_lab"), self._spans)
        self._gauges = Gauges(meter)
        self._scene = scene
        self._losses: Counter[str] = Counter()
        self._observer: Observer | None = None
        self._closely = ExitStack()
        self._closing: threading.Thread | None = None

    def take(self, fact: Event) -> None:
        """Take one fact, which the scene has; the observer's lock is held."""
        if self.ended or os.getpid() != self._process:
            return
        self._spans.take(fact)
        self._logs.take(fact)
        if isinstance(fact, ContextLost):
            self._losses[fact.device] += 1
        if isinstance(fact, SystemEnded):
            self._end()

    def follow(self, observer: Observer, *, every: bool) -> None:
        """Take what a system does from now on."""
        self._observer = observer
        atexit.register(self.close)
        with observer.lock:
            observer.look()
            if observer.ended:
                self._end()
                return
            observer.want(self, ("work", "health"))
            observer.followers.append(self.take)
        if every and observer.lab is not None and hasattr(observer.lab, "closely"):
            self._closely.enter_context(observer.lab.closely())

    def catch_up(self) -> None:
        """Make spans of what a recording has told, and wait where they are too many to be kept."""
        self._spans.flush(self._signals.flush)

    def publish(self, at: float) -> bool:
        """Have the system looked at; the publisher's thread only."""
        del at
        observer = self._observer
        if observer is not None:
            with observer.lock:
                if not self.ended:
                    self._gauges.update(observer.look(), self._losses)
                    self._spans.flush()
        return True

    def flush(self) -> None:
        """Look once more, and send all that is known; blocks for the collector, 5 s a batch."""
        self.publish(0.0)
        self._signals.flush()

    def close(self) -> None:
        """Look once more, send what waits, and end; blocks for the collector. Safe to repeat."""
        if os.getpid() != self._process:
            return
        if not self.ended:
            self.publish(0.0)
            with nullcontext() if self._observer is None else self._observer.lock:
                self._end()
        if self._closing is not None:
            self._closing.join()

    def _end(self) -> None:
        """Follow no more; another thread waits for the collector."""
        if self.ended:
            return
        self._spans.end()
        self.ended = True
        self._closely.close()
        if self._observer is not None:
            with suppress(ValueError):
                self._observer.followers.remove(self.take)
        atexit.unregister(self.close)
        closing = threading.Thread(
            target=self._signals.close, name=f"accel_lab {self.name} telemetry"
        )
        try:
            closing.start()
        except RuntimeError:  # the interpreter ends, and takes no thread more
            self._signals.close()
        else:
            self._closing = closing

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Export of {self.name}{', ended' if self.ended else ''}>"


def otlp(
    lab: Lab | Recording,
    endpoint: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    every: bool = False,
    code: bool = False,
    rate_hz: float = DEFAULT_HZ,
) -> Export:
    """Send a system's traces, log records and metrics to an OpenTelemetry collector.

    Of a system that runs, what happens from now on; does not block. Of a recording, all of it:
    blocks until that is sent. A collector that does not answer costs what it does not take, and
    nothing else; the logger `opentelemetry` says so.

    Parameters:
        lab: the system, or a recording of one.
        endpoint: the collector's address for OTLP/HTTP, `http://127.0.0.1:4318`; where it is not
            given, the environment's `OTEL_EXPORTER_OTLP_ENDPOINT`, or else that one.
        headers: sent with each batch, as a token.
        every: trace each message, where of many small ones some would do; they become slower.
        code: send the first line of each cell, too, which may hold a secret.
        rate_hz: how often the system is looked at, at most 30.

    Raises:
        InvalidArgument: the address is none, or it is no system.
        TelemetryUnavailable: the `observability` extra is not installed.
        ValueError: the rate is not positive.
    """
    check_rate(rate_hz)
    if endpoint is not None and not endpoint.startswith(("http://", "https://")):
        raise InvalidArgument(
            f"endpoint is {endpoint!r}; expected an address such as 'http://127.0.0.1:4318'"
        )
    require("telemetry.otlp", "opentelemetry.sdk", "opentelemetry.exporter")
    from accel_lab.telemetry.pipeline import Signals

    past = isinstance(lab, Recording)
    observer = None if isinstance(lab, Recording) else observer_of(lab)
    signals = Signals(endpoint, headers, _resource(lab.name, past=past))
    scene = Scene() if observer is None else observer.scene
    export = Export(lab.name, scene, signals, code=code)
    if observer is not None:
        export.follow(observer, every=every)
        PUBLISHER.add(export, rate_hz=rate_hz)
    elif isinstance(lab, Recording):
        _retell(lab, scene, export)
    return export


def _retell(recording: Recording, scene: Scene, export: Export) -> None:
    """Send all of a recording."""
    last = 0.0
    for fact in recording:
        if fact.at - last > A_LOOK_S:
            export.catch_up()
        last = fact.at
        scene.add(fact)
        if isinstance(fact, SystemEnded):
            export.catch_up()
        export.take(fact)
    export.catch_up()
    export.close()


def _resource(name: str, *, past: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "service.name": "accel_lab",
        "service.instance.id": name if past else f"{program()}/{os.getpid()}/{name}",
        names.SYSTEM: name,
    }
    if not past:
        found[names.PID] = os.getpid()
    with suppress(PackageNotFoundError):
        found[names.VERSION] = version("accel-lab")
    return found
