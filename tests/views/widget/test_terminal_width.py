"""Every view as text is as wide as a terminal: 80 columns, whatever the names in it."""

import time
from collections.abc import Iterator

import numpy as np
import pytest

from accel_lab import AccelRef, errors, views
from accel_lab.display.table import WIDTH
from accel_lab.system import System
from accel_lab.views.widget.view import View
from tests.views.patterns.serving import serve
from tests.views.training.steps import steps

WAIT_S = 20.0


def every_view(root: type[View] = View) -> Iterator[type[View]]:
    """Yield every view of a system that there is, but not its class in a live kernel."""
    for kind in root.__subclasses__():
        if kind.__module__.startswith("accel_lab.views.") and not hasattr(kind, "_esm"):
            if kind not in (views.CanvasView, views.CellsView):  # of an actor, and of a session
                yield kind
            yield from every_view(kind)


def normalised_and_scaled_by_its_largest(x: AccelRef) -> AccelRef:
    return x / 2


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    """Open what a user has after an hour: two devices, long names, failures and a lost context."""
    with System("host", devices=2, name="width").ready() as lab:
        watched = views.timeline(lab)
        watched.drawn()  # from here on the work is traced
        device, other = lab.devices
        images_of_the_training_set = device.put(np.ones((256, 256), np.float32))
        kept = [images_of_the_training_set @ images_of_the_training_set for _ in range(3)]
        kept.append(device.run(normalised_and_scaled_by_its_largest, kept[0], pure=True).result())
        world = lab.world(name="all_devices_of_this_machine").ready()
        world.all_reduce(world.replicate(np.ones((256, 256)))).result(WAIT_S)
        lab.observe("the_largest_of_all_gradients_of_the_second_layer", kept[-1])
        for fault in ("library", "poison"):
            with pytest.raises(errors.AccelError):
                lab.inject(fault, device).result(WAIT_S)
        lab.ready()
        kept.append(other.put(images_of_the_training_set).result())
        with pytest.raises(errors.UserCodeError):
            device.run(lambda: 1 / 0).result(WAIT_S)
        for fact in steps(20, trainer="PipelineParallelTrainer 12", killed=(7, 12)):
            lab.events.publish(fact)
        running = device.run(time.sleep, 600.0)
        serving = serve(lab)
        yield lab
        serving.gate.set()
        running.cancel()
        world.close()
        lab.check()


@pytest.mark.parametrize("kind", list(every_view()), ids=lambda kind: kind.__name__)
def test_text_of_every_view_fits(system: System, kind: type[View]) -> None:
    view = views.journal(system) if kind is views.JournalView else kind(system)
    lines = str(view).splitlines()
    assert len(lines) > 1
    assert not [line for line in lines if len(line) > WIDTH]


def test_text_of_what_a_device_holds_and_of_the_snapshot_fits(system: System) -> None:
    for shown in (system.tree(), system.devices[1].resident, system.journal[-20:]):
        lines = repr(shown).splitlines()
        assert len(lines) > 2
        assert not [line for line in lines if len(line) > WIDTH]


def test_a_narrow_tree_keeps_every_column(system: System) -> None:
    heads, rest, *rows = repr(system.tree()).splitlines()
    assert {*heads.split(), *rest.split()} >= {"Gen", "Mailbox", "In", "flight", "Restarts"}
    assert any(row.startswith("├─ cpu0 ") and row.endswith(" 1") for row in rows)
    assert any("last loss: cpu0 " in row for row in rows)
