"""Messages that a notebook sends repeatedly, found by the very objects that they are made of.

In a loop the same buffers and numbers go into the same call each time. What was worked out for it
before then holds: that its operands fit, what comes of it, and its bytes.
"""

import weakref
from typing import Any, TypeAlias

import msgspec

from accel_lab.compute.message.buffer import AccelRef, Handles, Ref
from accel_lab.compute.message.bytes_cache import LONGEST
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.compute.wire.codec import encode_message

Key: TypeAlias = tuple[int, ...]
"""Where the objects are in memory, of which a message is made."""

MOST = 256
TRIES = 64
TRIES_MORE = 2
"""So many are looked for in vain before fewer are; the second is after one that was found."""
SKIPS = (*([0] * TRIES), 2, 6, 16, 36, 66, 130, 256)
"""How many are passed over after the first in vain, after the second in a row, ...

Each but 0 is one less than a prime, so that in a loop of several messages it is not always the same
one that is looked for.
"""
_LAST = len(SKIPS) - 1
_STEADY = (AccelRef, int, float, complex, type(None))


class Repeat:
    """A message that was accepted before.

    Attributes:
        body: its bytes.
        spec: what it makes.
        expected: what the context is told of that, as bytes.
        generation: the device's when its operands were looked at.
        lost: how many handles had become useless by then.
    """

    __slots__ = ("_held", "body", "expected", "generation", "lost", "spec")

    def __init__(
        self, message: Operation[Any], spec: Spec | None, expected: Spec | None, held: Any
    ) -> None:
        self.body = msgspec.Raw(encode_message(message))
        self.spec = spec
        self.expected = msgspec.Raw(encode_message(expected))
        self.generation = self.lost = -1
        self._held = held


class MessageCache:
    """The messages of one type, or launches of one kernel, that a device was sent more than once.

    After messages of which none was known more and more of the next are not to be looked at. `find`
    may be called by any thread, `note` with the device's lock held.

    Attributes:
        skip: how many of the next messages are not to be looked at; who sends them counts.
    """

    def __init__(self) -> None:
        self.skip = 0
        self._vain = 0  # looked for in a row
        self._pause = 0
        self._unlearned = 0  # noted in a row, and none came before
        self._known: dict[Key, Repeat] = {}
        self._once: dict[Key, list[Any]] = {}

    def find(self, made_of: tuple[Any, ...], generation: int) -> Repeat | None:
        """Return what is known of a message made of these very objects, if it still holds."""
        found = self._known.get(tuple(map(id, made_of)))
        if found is None or found.generation != generation or found.lost != Handles.lost:
            return None
        self._vain = TRIES - TRIES_MORE
        return found

    def note(
        self,
        made_of: tuple[Any, ...],
        message: Operation[Any],
        made: tuple[Spec | None, Spec | None],
        standing: tuple[int, int],
    ) -> None:
        """Note that a message was accepted; one that comes the second time is remembered.

        Parameters:
            made_of: what was given for it.
            made: what it makes, and what the context is told of that.
            standing: the generation, and how many handles had become useless before it was looked
                at.
        """
        is_seldom = self._vain >= TRIES
        self.skip, self._vain = SKIPS[self._vain], min(self._vain + 1, _LAST)
        # Also where it is remembered: other objects may have been in the places of these.
        known, key = self._known, tuple(map(id, made_of))
        found = known.get(key)
        if found is None and (is_seldom or self._is_due()) and self._came_before(key, made_of):
            if len(known) >= MOST:
                known.clear()
            found = known[key] = Repeat(message, *made, self._held(key, made_of))
            self._unlearned = 0
        if found is not None:
            found.generation, found.lost = standing

    def _is_due(self) -> bool:
        """Whether to learn a message that comes between others which are known.

        That takes longer than to look for it, and in most loops it is always the same that change.
        """
        if self._pause:
            self._pause -= 1
            return False
        self._pause, self._unlearned = SKIPS[self._unlearned], min(self._unlearned + 1, _LAST)
        return True

    def _came_before(self, key: Key, made_of: tuple[Any, ...]) -> bool:
        """Whether these objects were noted once; if not, they are now, where none can change."""
        once = self._once.get(key)
        if once is not None and all(
            one is here or (type(one) is weakref.ref and one() is here)
            for one, here in zip(once, made_of, strict=True)
        ):
            return True
        if all(map(_is_steady, made_of)):
            if len(self._once) >= MOST:
                self._once.clear()
            self._once[key] = [weakref.ref(x) if isinstance(x, Ref) else x for x in made_of]
        return False

    def _held(self, key: Key, made_of: tuple[Any, ...]) -> list[Any]:
        """Return what keeps a key true: nothing else can be where its objects are.

        A buffer is not kept in use for it: the key goes with the first handle that goes.
        """
        this = weakref.ref(self)

        def gone(_: object) -> None:
            repeats = this()
            if repeats is not None:
                repeats._known.pop(key, None)  # noqa: SLF001 - its own

        return [weakref.ref(x, gone) if isinstance(x, Ref) else x for x in made_of]


def _is_steady(one: Any) -> bool:
    """Whether this cannot change in place, and is not too much to be kept."""
    return isinstance(one, _STEADY) or (isinstance(one, (str, bytes)) and len(one) <= LONGEST)
