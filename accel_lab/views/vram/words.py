"""The memory view without a front end: lines of text, and tables."""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import NamedTuple

from accel_lab.display import table
from accel_lab.display.buffer_number import short
from accel_lab.display.clock import time_of_day
from accel_lab.display.counts import counted
from accel_lab.display.owners import keeper
from accel_lab.display.sizes import memory, size
from accel_lab.views.widget.view import State

ROWS = 20
"""How many blocks are drawn as text and in the table without a front end."""
_BLOCKS = ("Device", "Variable", "Size", "Memory", "Array", "Made by", "Generation", "Buffer")
_LINES = ("Device", "Variable", "Size", "Array", "Made by")
_OBJECTS = ("Device", "Object", "Type", "Size", "Gen", "Kept by")
_DEVICES = (
    "Device",
    "Generation",
    "In use",
    "Peak",
    "Blocks",
    "A new block, at most",
    "Lost but kept",
)
_NUMBERS = {"Size", "Blocks"}
_USUAL = ("pool", "workspace")
_HEAD = "Objects of %%gpu cells; what they hold may be in blocks, too"
WIDTH = 80
_WIDE = {"Variable": 20, "Array": 22, "Made by": 16, "Object": 14, "Type": 18, "Kept by": 21}
"""How wide a column is at most, so that a line has 80 characters."""


def text(state: State) -> str:
    """Draw a state as lines of text, of 80 characters at most."""
    told = [_caption(state)]
    for device in state["devices"]:
        told += wrap(_sentence(device, state), WIDTH, subsequent_indent="    ")
    told += wrap(_kept(state), WIDTH, subsequent_indent="    ")
    if rows := list(_rows(state)):
        lines = [_fitted(_LINES, _in_line(row)) for row in rows[:ROWS]]
        told += [*table.as_text(_LINES, lines, _NUMBERS), *_unlisted(state)]
    if objects := list(_objects(state)):
        lines = [_fitted(_OBJECTS, one) for one in objects[:ROWS]]
        told += [_HEAD, *table.as_text(_OBJECTS, lines, _NUMBERS), *_unlisted_objects(state)]
    return "\n".join(told)


def _fitted(columns: Sequence[str], cells: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        table.shortened(cell, _WIDE.get(name, WIDTH))
        for name, cell in zip(columns, cells, strict=True)
    )


def _in_line(row: "_Row") -> tuple[str, ...]:
    """Return the cells of a line; what is lost says so beside its name, and its memory its array.

    That of most is the pool's, which goes without saying.
    """
    device, variable, nbytes, memory_, array, made_by, generation, _ = row.cells
    lost = f"lost: {variable}" if generation.endswith("lost") else variable
    what = array if memory_ in ("", *_USUAL) else f"{memory_} {array}"
    return device, lost, nbytes, what, made_by


def html(state: State) -> str:
    """Draw a state as two tables, the second for blocks, without style or script."""
    devices = (_summary(device) for device in state["devices"])
    caption = ". ".join((_caption(state), _kept(state))) if _kept(state) else _caption(state)
    drawn = table.as_html(caption, _DEVICES, devices)
    rows = [row.cells for row in _rows(state)][:ROWS]
    if rows:
        caption = ". ".join(("Blocks, the largest first", *_unlisted(state)))
        drawn += table.as_html(caption, _BLOCKS, rows)
    if objects := list(_objects(state)):
        caption = ". ".join((_HEAD, *_unlisted_objects(state)))
        drawn += table.as_html(caption, _OBJECTS, objects[:ROWS])
    return drawn


class _Row(NamedTuple):
    nbytes: int
    cells: tuple[str, ...]


def _rows(state: State) -> list[_Row]:
    """Return every block of a state, the largest first."""
    rows = [
        _row(device["name"], piece, str(device["generation"]))
        for device in state["devices"]
        for piece in device.get("strip", ())
        if "ids" in piece
    ]
    rows += [
        _row(device["name"], block, f"{device['lost_in']}, lost")
        for device in state["devices"]
        for block in device.get("lost", ())
    ]
    return sorted(rows, key=lambda row: -row.nbytes)


def _row(device: str, block: State, generation: str) -> _Row:
    ids, owner, nbytes = ", ".join(map(short, block["ids"])), block["owner"], size(block["bytes"])
    called = keeper(block.get("kept", ()), owner)
    of = block.get("memory", "")
    cells = (device, called, nbytes, of, block["what"], owner, generation, ids)
    return _Row(block["bytes"], cells)


def _objects(state: State) -> Iterator[tuple[str, ...]]:
    """Yield what stands in each column about an object, the largest first."""
    every = [(device, one) for device in state["devices"] for one in device.get("objects", ())]
    for device, one in sorted(every, key=lambda pair: -pair[1]["bytes"]):
        kept = ", ".join(one["kept"])
        generation = str(device["generation"])
        yield device["name"], one["name"], one["what"], size(one["bytes"]), generation, kept


def _unlisted_objects(state: State) -> tuple[str, ...]:
    """Say what the table of objects leaves out."""
    every = sum(device.get("object_count", 0) for device in state["devices"])
    more = every - min(ROWS, len(list(_objects(state))))
    return (f"{counted(more, 'more object')} not listed",) if more else ()


def _unlisted(state: State) -> tuple[str, ...]:
    """Say what the table of blocks leaves out."""
    every = sum(device.get("count", 0) + device.get("lost_count", 0) for device in state["devices"])
    more = every - min(ROWS, len(_rows(state)))
    return (f"{counted(more, 'more block')} not listed",) if more else ()


def _caption(state: State) -> str:
    ending = " (closed)" if state["closed"] else ""
    name = f"Memory of {state['lab'] or 'no system'}{ending}"
    return f"{name}; {state['unrecorded']}" if "unrecorded" in state else name


def _kept(state: State) -> str:
    """Say what the host keeps beside the devices' memory; empty where that is nothing."""
    parts = [f"{size(nbytes)} {what}" for what, nbytes in state.get("kept", ())]
    parts += [
        f"{size(nbytes)} of {device['name']} {what}"
        for device in state["devices"]
        for what, nbytes in device.get("kept", ())
    ]
    return f"On the host, not in device memory: {', '.join(parts)}" if parts else ""


def _summary(device: State) -> tuple[str, ...]:
    """What stands in each column about a device."""
    if "generation" not in device:
        return (device["name"], "", "not seen yet", "", "", "", "")
    lost = f"{device['lost_count']} ({size(device['lost_bytes'])})" if "lost" in device else ""
    return (
        device["name"],
        str(device["generation"]),
        memory(device["used"], device.get("total")),
        size(device["history"]["peak"]) if "history" in device else "",
        str(device["count"]),
        size(device["room"]) if "room" in device else "not known",
        lost,
    )


def _sentence(device: State, state: State) -> str:
    if "generation" not in device:
        does = device.get("state", "running")
        return f"{device['name']}: {'' if does == 'running' else f'{does}, '}not seen yet"
    least = "at least " if "unrecorded" in state else ""
    said = [f"{device['name']}: {least}{memory(device['used'], device.get('total'))} in use"]
    said.append(f"in {counted(device['count'], 'block')} of generation {device['generation']}")
    line = " ".join(said)
    if "room" in device:
        line += f"; a new block may have {size(device['room'])} at most"
    if (seen := device.get("history")) is not None and seen["peak"] > device["used"]:
        line += f"; {size(seen['peak'])} at most, {time_of_day(seen['peak_at'])}"
    if "lost" in device:
        lost = counted(device["lost_count"], "block")
        line += f"; {lost} of generation {device['lost_in']} lost but kept"
    return line
