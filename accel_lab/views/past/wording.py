"""Entries of a journal in the user's words: messages by name, buffers by their variables.

What the journal is made of, as numbers of requests and buffers and what markers hold, stands in the
details of a line.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from accel_lab.compute.message.builtin import Allocate, Download, Put, Run, Upload
from accel_lab.compute.message.operation import operand_fields, spec_text
from accel_lab.display.buffer_number import short
from accel_lab.display.sizes import size
from accel_lab.display.table import in_one_line
from accel_lab.journal.entries.entry import Entry, describe, kind_of
from accel_lab.libraries.jit.messages import LaunchKernel
from accel_lab.views.past.device import ASKED_FOR
from accel_lab.views.past.player import Line

WORDS = 240
"""How long a detail may be."""
_SAID = {"values", "called"}
"""What stands among the operands, or is the title."""
OPERANDS = 8
"""How many operands of a message are told, the first."""
Called = Callable[[Entry, int], str]
"""Says what a buffer of an entry is called."""


def by_number(entry: Entry, id_: int) -> str:  # noqa: ARG001 - as others need it
    """Call a buffer by its short number."""
    return f"#{short(id_)}"


def mark_of(entry: Entry) -> str:
    """Return "fault" for a failure, "turn" for a new generation, else nothing."""
    if entry.kind == "failed":
        return "" if entry.fields["kind"] in ASKED_FOR else "fault"
    if entry.kind == "explained":
        return "" if entry.fields.get("asked") else "fault"
    if entry.kind == "context began" and entry.generation > 1:
        return "turn"
    return ""


def line_of(entry: Entry, called: Called = by_number) -> Line:
    """Return an entry in words."""
    words = _WORDS.get(entry.kind)
    if words is None:
        what, outcome = said(entry, called), entry.outcome
    else:
        what, outcome = words(entry, called)
    generation = entry.generation if entry.device else 0
    seq = entry.seq if entry.kind == "message" else 0
    mark, detail = mark_of(entry), tuple(_details(entry))
    cell = entry.cell or 0
    return Line(entry.at, entry.device, generation, what, outcome, mark, seq, cell, detail)


def said(entry: Entry, called: Called = by_number) -> str:
    """Return a message as one would write it: `c = Gemm(a, b)`."""
    kind, fields = kind_of(entry.raw[3][0]), entry.fields
    if kind is Upload:
        return f"{called(entry, fields['out'])} = upload of {size(fields['nbytes'])}"
    made = ", ".join(called(entry, id_) for id_ in entry.makes)
    if kind in (Put, Allocate):
        what = f"{fields['dtype']}{list(fields['shape'])}"
        return f"{made} = put({what})"
    given = ", ".join((*_operands(entry, called), *_options(entry)))
    title = "get" if kind is Download else entry.title
    text = f"{made} = {title}({given})" if made else f"{title}({given})"
    if (place := entry.place) is not None:
        text += f", rank {place.rank} of {place.size} of group {place.group}"
    return text


def _operands(entry: Entry, called: Called) -> Iterator[str]:
    """Yield the operands, by the names of buffers; an optional one with its own name."""
    kind = kind_of(entry.raw[3][0])
    if kind is LaunchKernel:
        refs = iter(_listed(entry, "refs"))
        for value in _listed(entry, "values"):
            yield called(entry, next(refs, 0)) if value is None else str(value)
        return
    required, optional, many = operand_fields(kind)
    for name in required:
        yield called(entry, entry.fields[name])
    for name in many:
        ids = _listed(entry, name)
        yield from (called(entry, id_) for id_ in ids[:OPERANDS])
        if len(ids) > OPERANDS:
            yield f"{len(ids) - OPERANDS} more"
    for name in optional:
        if (id_ := entry.fields.get(name)) is not None:
            yield f"{name}={called(entry, id_)}"


def _listed(entry: Entry, name: str) -> list[Any]:
    """Return a field that is a list; a journal of another version may have something else there."""
    value = entry.fields.get(name)
    return value if isinstance(value, list) else []


def _options(entry: Entry) -> Iterator[str]:
    """Yield what is not as it is by default, and no bytes."""
    kind = kind_of(entry.raw[3][0])
    if kind in (Run, Download):
        return
    required, optional, many = operand_fields(kind)
    operands = {*required, *optional, *many}
    defaults = dict(zip(reversed(kind.__struct_fields__), reversed(_defaults(kind)), strict=False))
    for name, value in entry.fields.items():
        if (
            name in operands
            or name in _SAID
            or isinstance(value, bytes)
            or value in (None, [], {}, "")
        ):
            continue
        if name not in defaults or msgspec.to_builtins(defaults[name]) != value:
            yield f"{name}={in_one_line(str(value), 40)}"


def _defaults(kind: Any) -> tuple[Any, ...]:
    return tuple(
        value if isinstance(value, str | int | float | bool | type(None)) else None
        for value in kind.__struct_defaults__
    )


def _details(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield what the journal has of an entry, as (what, text)."""
    yield "kind", entry.kind if entry.kind != "message" else f"message, {entry.name}"
    if entry.seq:
        yield "request", f"#{entry.seq}"
    if entry.device:
        yield "generation", str(entry.generation)
    for id_, spec in entry.makes.items():
        made = f"{spec_text(spec)}, " if spec is not None else ""
        yield "makes", f"{made}buffer {short(id_)} ({id_})"
    if entry.operands:
        yield "operands", ", ".join(f"buffer {short(id_)}" for id_ in entry.operands[:OPERANDS])
    if entry.library:
        yield "library", entry.library
    if entry.timeout_s is not None:
        yield "may take", f"{entry.timeout_s:g} s"
    yield "as recorded", in_one_line(describe(entry), WORDS)


def _session(entry: Entry, _: Called) -> tuple[str, str]:
    facts = entry.fields
    if damage := facts.get("damage"):
        return "the journal was found damaged", str(damage)
    devices = ", ".join(facts.get("devices", ()))
    return f"session of {facts.get('system')} on {facts.get('backend')}: {devices}", ""


def _ended(entry: Entry, _: Called) -> tuple[str, str]:
    taken = len(entry.fields["in_flight"])
    return f"context of generation {entry.generation} ended, {taken} in flight", ""


def _explained(entry: Entry, _: Called) -> tuple[str, str]:
    became = "replaced, as asked" if entry.fields.get("asked") else "lost"
    return f"context of generation {entry.generation} was {became}", entry.fields["cause"]


def _failed(entry: Entry, _: Called) -> tuple[str, str]:
    name = entry.name if entry.name != entry.kind else f"#{entry.seq}"
    return f"{name} failed", f"{entry.fields['kind']}: {entry.fields['text']}"


def _result(entry: Entry, _: Called) -> tuple[str, str]:
    digest, shape = entry.fields["digest"], list(entry.fields["shape"])
    return f"result of message {entry.seq}: {entry.fields['dtype']}{shape}", f"digest {digest}"


def _rebuilt(entry: Entry, _: Called) -> tuple[str, str]:
    buffers, messages = len(entry.fields["buffers"]), entry.fields["messages"]
    return f"{buffers} buffers were rebuilt by {messages} messages", ""


def _ids(entry: Entry, ids: Sequence[int], called: Called) -> str:
    return ", ".join(called(entry, id_) for id_ in ids)


_WORDS: dict[str, Callable[[Entry, Called], tuple[str, str]]] = {
    "session": _session,
    "free": lambda entry, called: (f"free {_ids(entry, entry.fields['ids'], called)}", ""),
    "context began": lambda entry, _: (
        f"context of generation {entry.generation} began, process {entry.fields['pid']}",
        "",
    ),
    "context ended": _ended,
    "explained": _explained,
    "failed": _failed,
    "result": _result,
    "rebuilt": _rebuilt,
    "content": lambda entry, _: (
        f"bytes of message {entry.seq}",
        entry.fields["why"] or "kept",
    ),
    "arrays": lambda entry, called: (
        f"message {entry.seq} made {_ids(entry, entry.fields['ids'], called)}",
        "",
    ),
    "checkpoint": lambda entry, called: (
        f"checkpoint of {called(entry, entry.fields['id'])}",
        "kept",
    ),
}
"""What an entry is, and what became of it or why it was; a message describes itself."""
