"""Which devices of a system belong together, and whose contexts a loss replaces."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeGuard, get_args

from accel_lab.actor.supervision import AllForOne, OneForOne, RestForOne, Strategy
from accel_lab.compute.message.validation import require_count, require_seconds
from accel_lab.errors import InvalidArgument

Supervision = Literal["one_for_one", "all_for_one", "rest_for_one"]
Groups = Supervision | Iterable[tuple[Supervision, Sequence[int]]]
_STRATEGIES: dict[str, type[OneForOne | AllForOne | RestForOne]] = {
    "one_for_one": OneForOne,
    "all_for_one": AllForOne,
    "rest_for_one": RestForOne,
}


class Group(NamedTuple):
    """Devices, by their positions, and the strategy of their supervisor.

    Attributes:
        strategy: whom of them a loss concerns.
        members: their positions in the system, in the order that `RestForOne` goes by.
        whole: whether all of the system's devices are among them.
    """

    strategy: Strategy
    members: tuple[int, ...]
    whole: bool

    @property
    def name(self) -> str:
        """The name of their supervisor's actor: `devices`, or `devices-0-1`."""
        return "devices" if self.whole else "-".join(["devices", *map(str, self.members)])


def groups_of(strategy: Groups, count: int, *, max_restarts: int, within_s: float) -> list[Group]:
    """Divide `count` devices into groups; one that is in no named group stands alone.

    Raises:
        InvalidArgument: no such strategy, device or limit, or a device that is in two groups.
    """
    max_restarts = require_count(max_restarts, "max_restarts")
    within_s = require_seconds(within_s, "within_s")
    if not isinstance(strategy, Iterable):
        _pair(strategy)
    named = [(strategy, range(count))] if isinstance(strategy, str) else list(strategy)
    found: list[Group] = []
    free = set(range(count))
    for entry in named:
        word, positions = _pair(entry)
        members = tuple(positions)
        if not members or not free.issuperset(members) or len(set(members)) < len(members):
            text = (
                f"a group's devices are positions from 0 to {count - 1}, each in one group and "
                f"there once; {list(members)} cannot be"
            )
            raise InvalidArgument(text)
        free.difference_update(members)
        rules = _STRATEGIES[word](max_restarts=max_restarts, within_s=within_s)
        apart = isinstance(rules, OneForOne)
        parts = [(one,) for one in members] if apart else [members]
        found += [Group(rules, part, len(part) == count) for part in parts]
    alone = OneForOne(max_restarts=max_restarts, within_s=within_s)
    return found + [Group(alone, (one,), count == 1) for one in sorted(free)]


def _pair(entry: object) -> tuple[str, Sequence[int]]:
    words = get_args(Supervision)
    match entry:
        case (str(word), positions) if word in words and _all_integers(positions):
            return word, positions
    text = (
        f"strategy is {' or '.join(words)}, or a list of groups as ('all_for_one', [0, 1]); "
        f"it cannot be {entry!r}"
    )
    raise InvalidArgument(text)


def _all_integers(positions: object) -> TypeGuard[Sequence[int]]:
    return isinstance(positions, Sequence) and all(type(one) is int for one in positions)
