"""The two processes of a measurement: one that is killed, and one that goes on."""

import signal
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import accel_lab
from accel_lab import AccelRef
from accel_lab.errors import AccelError
from accel_lab.journal.replay.tolerance import distance, eps_of
from tests.benchmarks.reopen.values import digests, values


class Asked(msgspec.Struct, frozen=True):
    """What a process is to do.

    Attributes:
        folder: of the session.
        again: whether it goes on with it.
        nbytes, share, side: as of `values`.
        beside: the folder of the values, if these are compared; else empty.
    """

    folder: str
    backend: str
    nbytes: int
    share: float
    side: int
    again: bool = False
    beside: str = ""


def record(asked: Asked) -> dict[str, Any]:
    """Make a session; return what is in it. It stays open until somebody kills the process."""
    names: dict[str, Any] = {}
    lab = accel_lab.open(asked.folder, asked.backend, devices=1, names=names)
    device = lab.devices[0]
    asked_for = values(asked.nbytes, asked.share, asked.side)
    begin = time.perf_counter()
    for number, value in enumerate(asked_for):
        names[value.name] = value.kind.make(device, value.numbers, number)
    for value in asked_for:
        names[value.name].result()
    made = time.perf_counter()
    commit = lab.commit()
    committed = time.perf_counter()
    assert not commit.lost, commit
    if asked.beside:
        for name, one in names.items():
            np.save(Path(asked.beside) / f"{name}.npy", one.get())
    return {
        "nbytes": sum(one.nbytes for one in names.values()),
        "uploaded": sum(names[one.name].nbytes for one in asked_for if one.is_uploaded),
        "names": len(names),
        "make_s": made - begin,
        "commit_s": committed - made,
        "digests": {} if asked.beside else digests(names, device),
    }


def go_on(asked: Asked) -> dict[str, Any]:
    """Open a session; return how long that takes, and what its names are."""
    names: dict[str, Any] = {}
    asked_for = values(asked.nbytes, asked.share, asked.side)
    begin = time.perf_counter()
    lab = accel_lab.open(asked.folder, asked.backend, devices=1, names=names)
    opened = time.perf_counter()
    lab.ready()
    ready = time.perf_counter()
    failed: dict[str, str] = {}
    ends: dict[bool, float] = {}
    end = ready
    for is_uploaded in (True, False):
        for value in asked_for:
            if value.is_uploaded == is_uploaded:
                try:
                    names[value.name].result()
                except AccelError as error:
                    failed[value.name] = str(error)
        ends[is_uploaded] = time.perf_counter() - end
        end += ends[is_uploaded]
    with lab:
        found = {name: one for name, one in names.items() if name not in failed}
        told = {
            "open_s": opened - begin,
            "ready_s": ready - opened,
            "uploads_s": ends[True],
            "made_s": ends[False],
            "all_s": end - begin,
            "lost": dict(lab.opened.lost) | failed,
            "device": lab.tree().children[0].detail,
        }
        if asked.beside:
            units = {one.name: one.kind.units for one in asked_for}
            told["compared"] = compared(Path(asked.beside), found, units)
        else:
            told["digests"] = digests(found, lab.devices[0])
    return told


def compared(
    folder: Path, names: dict[str, AccelRef], units: dict[str, float]
) -> dict[str, dict[str, Any]]:
    """Compare values with those that were saved."""
    told: dict[str, dict[str, Any]] = {}
    for name, ref in names.items():
        was, now = np.load(folder / f"{name}.npy"), ref.get()
        if (was.shape, was.dtype) != (now.shape, now.dtype):
            told[name] = {"verdict": f"{was.dtype}{was.shape} became {now.dtype}{now.shape}"}
            continue
        if was.tobytes() == now.tobytes():
            told[name] = {"verdict": "equal"}
            continue
        off, may = float(distance(was, now)), float(units[name] * eps_of(str(was.dtype)))
        at = int(np.argmax(np.abs(was.ravel() - now.ravel())))
        told[name] = {
            "verdict": "within tolerance" if off <= may else "differs",
            "off": off,
            "may": may,
            "most_at": at,
            "was": str(was.ravel()[at]),
            "is": str(now.ravel()[at]),
        }
    return told


def main() -> None:
    """Do what the only argument says, and print what there is to tell."""
    asked = msgspec.json.decode(sys.argv[1], type=Asked)
    told = go_on(asked) if asked.again else record(asked)
    sys.stdout.write(msgspec.json.encode(told).decode() + "\n")
    sys.stdout.flush()
    while not asked.again:
        signal.pause()


if __name__ == "__main__":
    main()
