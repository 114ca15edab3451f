"""A scene's work in the trace event format, which Perfetto and chrome://tracing open.

A device is a process, a stream is a thread. Times are microseconds after a whole second, which
`otherData` names. `widgets/timeline/trace.js` says the same in the browser.
"""

from collections.abc import Collection, Iterator
from math import floor
from typing import Any

from accel_lab.compute.events.samples import Slice
from accel_lab.compute.supervision.device_records import Done
from accel_lab.views.scene.fault_mark import Mark, mark_of
from accel_lab.views.scene.scene import Scene

Trace = dict[str, Any]


def chrome_trace(scene: Scene, records: Collection[Done] = ()) -> Trace:
    """Return all finished and running work, faults and generation changes of a scene.

    What the cards have recorded themselves stands on threads of its own, a stream each: `card
    stream 7`; and so do the calls of CUDA, a thread each: `calls of thread 4242`.

    Finished work is a complete event (X), and so is what was lost with its context, which says so.
    Running work is one that begins and does not end (B), the rest are instants (i) of a device.
    """
    slices = [(device, one) for _, device, one in scene.slices]
    slices += [(device, one) for device, running in scene.running.items() for one in running]
    marks = [mark for _, fact in scene.facts if (mark := mark_of(fact)) is not None]
    times = [one.start for _, one in slices] + [mark.at for mark in marks]
    times += [one.work.start for one in records]
    origin = floor(min(times, default=0.0))
    pids = {name: pid for pid, name in enumerate(_devices(scene, slices, marks), start=1)}
    for one in records:
        pids.setdefault(one.device, len(pids) + 1)
    rows = [*((device, one.stream) for device, one in slices), *map(_row, records)]
    streams = list(dict.fromkeys(rows))
    tids: dict[tuple[str, str], int] = {}
    for device, stream in streams:
        tids[device, stream] = 1 + sum(other == device for other, _ in tids)
    events = [_named("process_name", name, pid, 0) for name, pid in pids.items()]
    events += [
        _named("thread_name", stream, pids[device], tid) for (device, stream), tid in tids.items()
    ]
    events += [_work(one, pids[device], tids[device, one.stream], origin) for device, one in slices]
    events += [_record(one, pids[one.device], tids[_row(one)], origin) for one in records]
    events += [_instant(mark, pids[mark.device], origin) for mark in marks]
    unseen = scene.traced - len(scene.slices) + sum(scene.untraced.values())
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {
            "system": "" if scene.tree is None else scene.tree.name,
            "origin_s": origin,
            "not_shown": unseen,
        },
    }


def devices_of(scene: Scene) -> Iterator[str]:
    """Yield the names of the devices that a scene's tree has."""
    if scene.tree is not None:
        yield from (node.name for node in scene.tree.children if node.kind == "device")


def _devices(scene: Scene, slices: list[tuple[str, Slice]], marks: list[Mark]) -> list[str]:
    """Return every device once, those of the tree first."""
    known = [*devices_of(scene), *(device for device, _ in slices), *(m.device for m in marks)]
    return list(dict.fromkeys(known))


def _named(what: str, name: str, pid: int, tid: int) -> Trace:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _work(one: Slice, pid: int, tid: int, origin: int) -> Trace:
    event: Trace = {"ph": "B" if one.end is None else "X", "name": one.name, "cat": one.kind}
    event |= {"pid": pid, "tid": tid, "ts": _microseconds(one.start - origin)}
    if one.end is not None:
        event["dur"] = _microseconds(max(0.0, one.end - one.start))
    return event | {"args": {"seq": one.seq} | ({"lost": True} if one.lost else {})}


def _row(one: Done) -> tuple[str, str]:
    """Return the device and the thread of a record."""
    work = one.work
    if work.kind in ("driver", "runtime"):
        return one.device, f"calls of thread {work.stream}"
    return one.device, "CUPTI" if work.kind == "overhead" else f"card stream {work.stream}"


def _record(one: Done, pid: int, tid: int, origin: int) -> Trace:
    work = one.work
    args = {"seq": work.seq, "cell": one.cell, "nbytes": work.nbytes}
    return {
        "ph": "X",
        "name": work.name,
        "cat": work.kind,
        "pid": pid,
        "tid": tid,
        "ts": _microseconds(work.start - origin),
        "dur": work.duration_ns / 1e3,
        "args": {name: value for name, value in args.items() if value},
    }


def _instant(mark: Mark, pid: int, origin: int) -> Trace:
    at = _microseconds(mark.at - origin)
    return {
        "ph": "i",
        "name": mark.text,
        "cat": mark.kind,
        "pid": pid,
        "tid": 0,
        "ts": at,
        "s": "p",
    }


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6, 3)
