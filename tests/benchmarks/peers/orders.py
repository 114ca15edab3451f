"""What travels between a benchmark and a peer's process: one JSON object a line, both ways."""

from typing import TypeAlias

import msgspec


class Ask(msgspec.Struct, frozen=True, tag=True):
    """Ask `count` times, each after the answer to the one before."""

    count: int


class Tell(msgspec.Struct, frozen=True, tag=True):
    """Tell `count` messages and find out when the actor has taken all of them."""

    count: int


class Started(msgspec.Struct, frozen=True, tag=True):
    """The actor answers; `version` is its package's."""

    version: str


class Asked(msgspec.Struct, frozen=True, tag=True):
    """Seconds from each question to its answer."""

    seconds: list[float]


class Told(msgspec.Struct, frozen=True, tag=True):
    """Seconds until all were sent, and until the actor had taken the last."""

    sending_s: float
    taken_s: float


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The peer raised; nothing comes after this."""

    text: str


Order: TypeAlias = Ask | Tell
Answer: TypeAlias = Started | Asked | Told | Failed

order = msgspec.json.Decoder(Order)
answer = msgspec.json.Decoder(Answer)


def line(message: Order | Answer) -> bytes:
    """Encode one message with its end of line."""
    return msgspec.json.encode(message) + b"\n"
