"""What was found damaged, on record among the facts of a session."""

from typing import Any

import msgspec

from accel_lab.journal.stores.group import Group

DAMAGE = "damage"
_encode = msgspec.msgpack.Encoder().encode


def with_damage(facts: bytes, text: str) -> bytes:
    """Return the facts of a session once more, with what was found damaged meanwhile."""
    known: dict[str, Any] = msgspec.msgpack.decode(facts)
    return _encode(known | {DAMAGE: text})


def damage_in(group: Group) -> str:
    """Return what the facts of a session say was found damaged; empty for nothing."""
    if group.device or DAMAGE.encode() not in group.data:
        return ""
    try:
        found = msgspec.msgpack.decode(group.data, type=dict[str, Any]).get(DAMAGE, "")
    except msgspec.DecodeError:
        return ""
    return str(found)
