"""Copies and pickles of what owns a system, or listens to one: refused, and nothing is closed."""

import copy
import gc
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import views
from accel_lab.actor.actor import Actor
from accel_lab.actor.events import Event
from accel_lab.journal.replay.replay import Replay
from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.system import System

OWNERS: dict[str, Callable[[System, Path], Any]] = {
    "system": lambda lab, _: lab,
    "journal": lambda lab, _: lab.journal,
    "store": lambda _, __: MemoryStore(),
    "replay": lambda lab, _: Replay(lab.journal, lab),
    "events": lambda lab, _: lab.events,
    "subscription": lambda lab, _: lab.events.subscribe(print, Event),
    "view": lambda lab, _: views.tree(lab),
    "lab view": lambda lab, _: views.lab(lab),
    "recording": lambda lab, folder: views.record(lab, folder / "lab.rec"),
    "arena": lambda lab, _: lab._arena,
}


@pytest.mark.parametrize("name", OWNERS)
def test_what_owns_something_is_neither_copied_nor_pickled(name: str, tmp_path: Path) -> None:
    with System("host", devices=1) as lab:
        x = lab.devices[0].put(np.ones(3))
        owner = OWNERS[name](lab, tmp_path)
        for act in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=r"is not copied or pickled: [a-z]"):
                act(owner)
        del owner
        gc.collect()
        assert x.get().sum() == 3


def test_the_copy_of_an_actors_address_is_the_address() -> None:
    with System("host", devices=1) as lab:
        actor = lab.spawn(Actor)
        assert copy.deepcopy([actor])[0] is copy.copy(actor) is actor
        with pytest.raises(TypeError, match="an ActorRef is not copied or pickled: the actor"):
            pickle.dumps(actor)
