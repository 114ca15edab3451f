"""Where two journals differ: the first message that is another, or made something else."""

import itertools
from typing import NamedTuple

from accel_lab.journal.entries.entry import Entry, describe
from accel_lab.views.past.journal import JournalPast

_OTHER_RESULT = "another result"


class Difference(NamedTuple):
    """Where two journals part, on one device.

    Attributes:
        device: its name.
        why: "another message", "another shape", "another result", or which of them ends.
        here, there: the entries' numbers; that of the other's last message where one has ended.
        what, other: both in words, empty where one has ended.
    """

    device: str
    why: str
    here: int
    there: int
    what: str
    other: str


class Differences(NamedTuple):
    """What a comparison found.

    Attributes:
        name: of what was compared with.
        messages: how many were compared, of all devices.
        undigested: how many of them had no digest on both sides.
        found: the first difference of each device, by place.
    """

    name: str
    messages: int
    undigested: int
    found: tuple[Difference, ...]


def compare(past: JournalPast, other: JournalPast) -> Differences:
    """Compare the messages of two journals, device by device, up to the first that differs."""
    mine, theirs = _messages(past), _messages(other)
    found: list[Difference] = []
    messages = undigested = 0
    for device in sorted(mine.keys() | theirs.keys()):
        last = 0, 0
        for a, b in itertools.zip_longest(mine.get(device, ()), theirs.get(device, ())):
            why = _why(a, b)
            if why:
                here, there = a.number if a else last[0], b.number if b else last[1]
                words = _words(a, why), _words(b, why)
                found.append(Difference(device, why, here, there, *words))
                break
            messages += 1
            last = a.number, b.number
            undigested += bool(a.result) and not (a.digests and b.digests)
    return Differences(
        other.name, messages, undigested, tuple(sorted(found, key=lambda one: one.here))
    )


def _messages(past: JournalPast) -> dict[str, list[Entry]]:
    by_device: dict[str, list[Entry]] = {}
    for entry in past.entries(range(len(past))):
        if entry.kind == "message":
            by_device.setdefault(entry.device, []).append(entry)
    return by_device


def _words(entry: Entry | None, why: str) -> str:
    if entry is None:
        return ""
    digests = [told.digest[:8] for told in entry.digests.values()]
    if why != _OTHER_RESULT or not digests:
        return describe(entry)
    return f"digest {', '.join(digests)}: {describe(entry)}"


def _why(a: Entry | None, b: Entry | None) -> str:
    if a is None or b is None:
        return "it ends before the other" if a is None else "the other ends before it"
    if a.name != b.name:
        return "another message"
    if [*a.makes.values()] != [*b.makes.values()] or a.spec != b.spec:
        return "another shape"
    was, now = [*a.digests.values()], [*b.digests.values()]
    if was and now and [one.digest for one in was] != [one.digest for one in now]:
        return _OTHER_RESULT
    return ""
