"""A journal that cannot be written is said at once, and for as long as that lasts."""

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from accel_lab import System
from accel_lab.errors import JournalUnavailable
from accel_lab.journal.events import JournalFailed, JournalResumed
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.journal.stores.open_store import store_for

NOBODY = 65534


class Shut(MemoryStore):
    """A store that takes nothing while it is shut."""

    name = "a shut store"
    shut = True

    def append(self, groups: "list[Group]", contents: "dict[str, bytes]") -> int:  # type: ignore[override]
        if self.shut:
            raise OSError(28, "No space left on device")
        return super().append(groups, contents)


@contextmanager
def warned() -> Iterator[list[str]]:
    """Gather what is warned of, on any thread."""
    told: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield told
        told += [str(one.message) for one in caught]


@pytest.mark.parametrize("place", ["/proc/session.sqlite", "a shut store"])
def test_what_is_not_written_is_a_warning_and_in_check_and_repr(place: str) -> None:
    journal = place if place.startswith("/") else Shut()
    with warned() as told, System("host", journal=journal) as lab:
        (cpu,) = lab.devices
        cpu.put(np.ones(3)).result()
        lab.events.wait_for(JournalFailed, 30, since=0)
        for _ in range(2):
            with pytest.raises(JournalUnavailable):
                lab.check()
        assert "; not written: " in repr(lab.journal)
        assert "entries wait in memory" in repr(lab.journal)
    assert any("the journal is not written" in text for text in told)
    assert any("entries of the journal are lost" in text for text in told)


def test_a_journal_that_is_written_again_is_silent_again() -> None:
    store = Shut()
    with warned() as told, System("host", journal=store) as lab:
        lab.events.wait_for(JournalFailed, 30, since=0)
        store.shut = False
        lab.events.wait_for(JournalResumed, 30, since=0)
        lab.check()
        assert "not written" not in repr(lab.journal)
    assert not any("lost" in text for text in told)


@contextmanager
def nobody() -> Iterator[None]:
    """Have no rights for a moment, where one has all."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_may_not_be_written_is_refused_at_the_call(what: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "x.journal"
        if what == "file":
            path.touch(0o444)
        folder.chmod(0o555 if what == "folder" else 0o777)
        with nobody(), pytest.raises(JournalUnavailable, match=f"may not write to the {what} /"):
            store_for(path)
        folder.chmod(0o755)
