"""A recorded program as it travels: its messages as bytes, in which slots stand for buffers.

A slot is a number that is the graph's own, so the bytes say nothing of any device. What a launch is
given fills the first of them; results of which the notebook has no handle are the graph's.
"""

from typing import Any, Literal, TypeAlias

import msgspec

from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument

Kind: TypeAlias = Literal["if", "while", "switch"]


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Where a number of the launch stands in a message.

    Attributes:
        number: which number.
        field: the message's field.
        at: where it stands in that if it is a tuple; -1 if it is not.
        plus: what is added to it, for words that come after those of earlier draws.
    """

    number: int
    field: str
    at: int = -1
    plus: int = 0


class Call(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """A message.

    Attributes:
        message: its bytes, with slots for the ids of buffers.
        result: the slot of its result, of several the first; -1 for none.
        spec: what it makes, where that is one buffer.
        places: where numbers of the launch stand in it.
    """

    message: msgspec.Raw
    result: int = -1
    spec: Spec | None = None
    places: tuple[Place, ...] = ()


class Branch(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Messages of which a condition on the device says whether, and how often, they are run.

    Attributes:
        kind: `if` runs the first body where the condition is not zero, else the second; `while`
            runs the one body as long as it is not zero; `switch` runs the body of that number.
        condition: the slot of a buffer of one element.
    """

    kind: Kind
    condition: int
    bodies: list[list["Call | Branch"]]


Step: TypeAlias = Call | Branch


class Slot(msgspec.Struct, frozen=True, array_like=True):
    """A buffer of a program; without a dtype it is what is no array, as a kernel."""

    number: int
    shape: tuple[int, ...] = ()
    dtype: str = ""


class Plan(msgspec.Struct, frozen=True, array_like=True):
    """A recorded program.

    Attributes:
        slots: how many there are.
        reads: those that a launch is given to be read, in its order.
        writes: those that it is given to be written.
        own: those that are the graph's own.
        numbers: those that a launch may change, as they were recorded.
    """

    slots: int
    reads: list[Slot]
    writes: list[Slot]
    own: list[Slot]
    numbers: list[Any]
    steps: list[Step]


_plans = msgspec.msgpack.Decoder(Plan)


def decode_plan(body: bytes) -> Plan:
    """Return the program that `encode_plan` of `Recording` has written.

    Raises:
        InvalidArgument: it is none.
    """
    try:
        return _plans.decode(body)
    except msgspec.DecodeError as error:
        raise InvalidArgument(f"RecordGraph: body is no recorded program: {error}") from None
