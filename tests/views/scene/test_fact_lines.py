"""Facts as lines."""

import math
from contextlib import suppress
from typing import Any, get_args, get_origin

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import events as compute
from accel_lab.actor.events import (
    ActorRestarted,
    ActorStarted,
    ActorStopped,
    DeadLetter,
    Event,
)
from accel_lab.compute.events import samples
from accel_lab.compute.events.tree import Kind, Node, State
from accel_lab.errors import ContextLost, InvalidArgument, RecordingDamaged, RecordingError
from accel_lab.views.scene.fact_lines import (
    SCHEMA,
    TYPES,
    decode,
    encode,
    header,
    read_header,
    stamp,
)

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
COUNTS = st.integers(0, 2**63 - 1)
CAUSES = st.one_of(
    st.builds(ValueError, st.text()),
    st.builds(ContextLost, st.text(), generation=st.integers(1, 9)),
    st.builds(KeyboardInterrupt),
)
NODES = st.recursive(
    st.builds(Node, kind=st.sampled_from(get_args(Kind)), state=st.sampled_from(get_args(State))),
    lambda below: st.builds(
        Node,
        kind=st.sampled_from(get_args(Kind)),
        state=st.sampled_from(get_args(State)),
        children=st.lists(below, max_size=3).map(tuple),
    ),
    max_leaves=5,
)
BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    float: NUMBERS,
    int: COUNTS,
    float | None: st.none() | NUMBERS,
    tuple[float, ...]: st.lists(NUMBERS, max_size=3).map(tuple),
    tuple[tuple[float, int], ...]: st.lists(st.tuples(NUMBERS, COUNTS), max_size=2).map(tuple),
    Node: NODES,
    BaseException: CAUSES,
    BaseException | None: st.none() | CAUSES,
}


def made(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Return structs of a type with anything in them."""
    return st.builds(
        kind, **{field.name: filled(field.type) for field in msgspec.structs.fields(kind)}
    )


def filled(type_: Any) -> st.SearchStrategy[Any]:
    """Return values of a field."""
    if type_ in BY_TYPE:
        return BY_TYPE[type_]
    inner = get_args(type_)
    of_structs = bool(inner) and isinstance(inner[0], type) and issubclass(inner[0], msgspec.Struct)
    if get_origin(type_) is tuple and of_structs:
        return st.lists(made(inner[0]), max_size=2).map(tuple)
    return st.from_type(type_)


def plain(fact: Event) -> dict[str, Any]:
    """Return a fact's fields, its exceptions as what is told of them."""
    told = {
        name: (type(value).__name__, str(value)) if isinstance(value, BaseException) else value
        for name, value in msgspec.structs.asdict(fact).items()
    }
    return {"type": type(fact), **told}


@pytest.mark.parametrize("kind", TYPES.values(), ids=TYPES)
@settings(max_examples=20)
@given(data=st.data())
def test_every_fact_comes_back_from_its_line(kind: type[Event], data: st.DataObject) -> None:
    fact = data.draw(made(kind))
    line = encode(fact)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert plain(decode(line)) == plain(fact)
    device, generation = getattr(fact, "device", ""), getattr(fact, "generation", 0)
    assert stamp(line) == (kind, fact.at, device, generation)


def test_an_exception_comes_back_with_its_name_and_text() -> None:
    fact = ActorRestarted(path="lab", cause=ContextLost("gone"), attempt=1, delay_s=0.5)
    told = decode(encode(fact))
    assert isinstance(told, ActorRestarted)
    assert (type(told.cause).__name__, str(told.cause)) == ("ContextLost", "gone")
    assert not isinstance(told.cause, ContextLost)


def test_an_exception_of_an_odd_name_keeps_its_text() -> None:
    fact = ActorStopped(path="lab", cause=type("no name", (Exception,), {})("text"))
    told = decode(encode(fact))
    assert isinstance(told, ActorStopped)
    assert str(told.cause) == "text"


def test_half_a_character_is_told_in_ascii() -> None:
    lost = compute.ContextLost(device="\udcff", generation=1, cause="é \ud800", in_flight=0)
    told = decode(encode(lost))
    assert isinstance(told, compute.ContextLost)
    assert (told.device, told.cause) == (r"\udcff", r"é \ud800")
    failed = ActorRestarted(path="a", cause=ValueError("\ud800"), attempt=1, delay_s=0)
    again = decode(encode(failed))
    assert isinstance(again, ActorRestarted)
    assert str(again.cause) == r"\ud800"
    assert read_header(header("\ud800")) == r"\ud800"


def test_a_reading_that_is_no_number_is_told_as_missing() -> None:
    reading = samples.Reading("load", math.nan)
    told = decode(encode(samples.HealthSampled(source="a", model="b", readings=(reading,))))
    assert isinstance(told, samples.HealthSampled)
    assert told.readings[0].value is None


def test_what_no_view_draws_has_no_line() -> None:
    with pytest.raises(InvalidArgument, match="a DeadLetter cannot be recorded; there are Actor"):
        encode(DeadLetter(path="lab", message=1))


def test_a_later_type_is_refused_by_name() -> None:
    with pytest.raises(RecordingError, match="holds a 'CoffeeMade', which this version") as caught:
        decode(b'{"type":"CoffeeMade","at":1.0,"cups":2}\n')
    assert type(caught.value) is RecordingError


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"[]\n",
        b'{"at":1.0}\n',
        b'{"type":"ActorStarted"}\n',
        b'{"type":"ActorStarted","at":"noon","path":"a"}\n',
        b'{"type":"ActorStarted","at":1.0}\n',
        b'{"type":"ActorStarted","at":1.0,"path":"\xff"}\n',
        b'{"type":"ActorStopped","at":1.0,"path":"a","cause":["one"]}\n',
        b'{"type":"ActorStopped","at":1.0,"path":"a","cause":7}\n',
        encode(ActorStarted(path="lab", at=1.0))[:-5],
    ],
)
def test_a_damaged_line_is_called_so(line: bytes) -> None:
    with pytest.raises(RecordingDamaged):
        decode(line)


@given(cut=st.integers(0, 200), junk=st.binary(max_size=8))
def test_no_bytes_raise_anything_else(cut: int, junk: bytes) -> None:
    line = encode(ActorRestarted(path="lab", cause=ValueError("é"), attempt=1, delay_s=0.5))
    with suppress(RecordingError):
        decode(line[:cut] + junk + line[cut + len(junk) :])


def test_a_field_of_a_later_version_is_passed_over() -> None:
    fact = decode(b'{"type":"ActorStarted","at":1.0,"path":"a","mood":"fine"}')
    assert fact == ActorStarted(path="a", at=1.0)


def test_the_header_names_the_system() -> None:
    assert header("lab") == b'{"accel_lab":"recording","schema":1,"name":"lab"}\n'
    assert read_header(header("lab")) == "lab"


def test_a_later_schema_is_refused() -> None:
    line = header("lab").replace(b'"schema":1', b'"schema":7')
    with pytest.raises(RecordingError, match=f"schema 7, and .* reads up to {SCHEMA}"):
        read_header(line)


@pytest.mark.parametrize("line", [b"", b"{}", b"\x89PNG\xff", b'{"journal":"accel_lab"}'])
def test_what_is_no_recording_is_refused(line: bytes) -> None:
    with pytest.raises(RecordingError, match="is not a recording"):
        read_header(line)
