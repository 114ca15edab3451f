"""How the cards and the processes of a system are: one sample a source, taken when asked."""

import os
import threading
import time
from typing import Any

from accel_lab.compute.events.samples import HealthSampled, Reading
from accel_lab.compute.events.tree import Node
from accel_lab.views.scene.card_gauge import CardGauge
from accel_lab.views.scene.process_gauge import ProcessGauge, program

NOTEBOOK = "notebook"
FIRST_S = 0.3
"""How long the first look waits for the driver; later ones take what the last one began."""
LATE_S = 5.0


class Gauges:
    """Samples the kernel's own process, each context's, and on `cuda` each card.

    A driver may hang just when somebody wants to know why. So cards are read in a thread that ends
    when it has read them, and a look takes what the last such thread has found.

    Parameters:
        nvml: the module to ask for cards; `pynvml` when not given.
    """

    def __init__(self, nvml: Any = None) -> None:
        self._processes = ProcessGauge()
        self._cards = CardGauge(nvml)
        self._found: dict[str, HealthSampled] = {}
        self._reader: threading.Thread | None = None
        self._began = 0.0

    def look(self, tree: Node, backend: str) -> list[HealthSampled]:
        """Return a sample of each source, the notebook's process first.

        One thread at a time; waits for a driver 0.3 s at most, and only the first time.
        """
        devices = [node for node in tree.children if node.kind == "device"]
        pids = {node.name: _pid(node) for node in devices}
        self._processes.retain({os.getpid(), *(pid for pid in pids.values() if pid)})
        own = self._processes.read(os.getpid())
        about = f"{program()}, process {os.getpid()}"
        samples = [HealthSampled(source=NOTEBOOK, model=about, readings=own)]
        if backend == "cuda":
            self._read_cards([node.name for node in devices])
        for name, pid in pids.items():
            process: tuple[Reading, ...] = self._processes.read(pid)
            card = self._card(name) if backend == "cuda" else None
            about = f"context process {pid}" if pid else "no context process"
            if card is not None:
                about = f"{card.model}, {about}" if card.model else about
                process = (*card.readings, *process)
            samples.append(HealthSampled(source=name, model=about, readings=process))
        return samples

    def _read_cards(self, names: list[str]) -> None:
        """Have the cards read, unless they are being read."""
        if self._reader is not None and self._reader.is_alive():
            return
        is_first = self._reader is None
        self._began = time.monotonic()
        self._reader = threading.Thread(
            target=self._read, args=(names,), name="accel_lab health", daemon=True
        )
        self._reader.start()
        if is_first:
            self._reader.join(FIRST_S)

    def _read(self, names: list[str]) -> None:
        for name in names:
            model, readings = self._cards.read(_index(name))
            self._found[name] = HealthSampled(source=name, model=model, readings=readings)

    def _card(self, name: str) -> HealthSampled:
        """Return what was read of a card last; instead of what is too old, why."""
        waited = time.monotonic() - self._began
        found = self._found.get(name)
        is_late = self._reader is not None and self._reader.is_alive() and waited > LATE_S
        if found is not None and not is_late:
            return found
        why = f"the driver has not answered for {waited:.0f} s" if is_late else "not read yet"
        return HealthSampled(
            source=name,
            model="" if found is None else found.model,
            readings=(Reading("card", None, why=why),),
        )


def _pid(device: Node) -> int | None:
    return next((node.pid for node in device.walk() if node.kind == "context"), None)


def _index(name: str) -> int:
    """Return the number in a card's name, which the backend has given it: "gpu3"."""
    return int(name.removeprefix("gpu"))
