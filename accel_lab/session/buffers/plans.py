"""How buffers can be had again as they are now: by their messages, or of their bytes.

What its messages can make again is not copied, however large it is. The bytes are kept of what they
cannot make, as what a function has made that is not pure, and of what so many messages have made
that to run them again would take long.
"""

import time
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from accel_lab.compute.arrays.dtypes import NAMES
from accel_lab.compute.device import Device
from accel_lab.compute.lineage.history import Restore, Slice
from accel_lab.compute.lineage.lineage import Lineage
from accel_lab.compute.lineage.recorded_message import Step
from accel_lab.compute.message.buffer import FREED, AccelRef, Ref
from accel_lab.display.sizes import size
from accel_lab.errors import AccelError
from accel_lab.journal.entries.entry import kind_of
from accel_lab.journal.replay.messages import refusal
from accel_lab.journal.replay.part import CODE
from accel_lab.session.buffers.kept import node_of
from accel_lab.session.buffers.record import digest_of
from accel_lab.session.plain.encoder import MOST_BYTES, Node, NotKept
from accel_lab.session.store.commit import Put, Recipe, Send
from accel_lab.session.store.folder import Folder, key_of

LONG = 1000
"""With more messages than this the bytes of a buffer are kept, if they are not many."""
FEW_BYTES = 64 << 20
WAIT_S = 10.0
"""How long a commit waits for the buffers of which it keeps the bytes."""

_encode = msgspec.msgpack.Encoder().encode


class _Known(NamedTuple):
    """What was found of some buffers, which holds until one of them is written."""

    ids: frozenset[int]
    since: int
    nodes: dict[int, Node | NotKept]


class Plans:
    """Finds how the buffers of a session's devices can be had again.

    Parameters:
        session: of the journal.
        lineages: by the devices' names.
    """

    def __init__(self, folder: Folder, session: str, lineages: dict[str, Lineage]) -> None:
        self._folder = folder
        self._session = session
        self._lineages = lineages
        self._known: dict[str, dict[frozenset[int], _Known]] = {}
        self._recipes: list[bytes] = []
        self._until = 0.0

    def of(
        self, refs: Iterable[Ref[Any]], devices: Collection[Device], gap: str
    ) -> dict[int, Node | NotKept]:
        """Return what a commit says of handles, by `id`; what was sent is in the record by now.

        Blocks for the bytes that are kept.

        Parameters:
            devices: those of the session.
            gap: why messages are missing in the journal; empty where none are.
        """
        self._until = time.monotonic() + WAIT_S
        found: dict[int, Node | NotKept] = {}
        by_device: dict[str, dict[int, list[Ref[Any]]]] = {}
        for ref in refs:
            if (node := node_of(ref)) is not None:
                found[id(ref)] = node
            elif why := _why_not(ref, devices):
                found[id(ref)] = NotKept(why)
            else:
                by_device.setdefault(ref.device.name, {}).setdefault(ref.id, []).append(ref)
        for name, by_id in by_device.items():
            nodes = self._of_device(name, {id_: some[0] for id_, some in by_id.items()}, gap)
            found |= {id(ref): nodes[id_] for id_, some in by_id.items() for ref in some}
        return found

    def learn(self, ref: AccelRef, key: str) -> None:
        """Know that a buffer, which nobody has used yet, was made of the kept bytes of this key.

        So the next commit does not fetch them to find that they are kept.
        """
        name, lineage = ref.device.name, self._lineages[ref.device.name]
        if (recorder := ref.device.requests.recorder) is not None:
            recorder.drain()
        node = ["kept", name, ref.id, *_spec(ref), key, self._session]
        with lineage.still():
            known = _Known(frozenset((ref.id,)), lineage.newest, {ref.id: node})
        self._known[name] = {**self._known.get(name, {}), known.ids: known}

    def forget(self) -> None:
        """Forget what was found, as what was kept for it may be removed."""
        self._known.clear()

    def _of_device(
        self, name: str, refs: dict[int, Ref[Any]], gap: str
    ) -> dict[int, Node | NotKept]:
        lineage, before = self._lineages[name], {} if gap else self._known.get(name, {})
        now: dict[frozenset[int], _Known] = {}
        slices: dict[frozenset[int], tuple[Slice, list[Send | Put]]] = {}
        with lineage.still():
            newest = lineage.newest
            held = [(id_, known.since) for known in before.values() for id_ in known.ids]
            same = {id_ for id_, _ in lineage.unwritten(held)}
            for family in map(frozenset, lineage.families(refs.keys())):
                known = before.get(family)
                if known is not None and family <= same:
                    now[family] = known
                else:
                    found = lineage.slice(family)
                    slices[family] = found, [_step(step, lineage) for step in found.steps]
        for family, (found, steps) in slices.items():
            why = gap or next(iter(found.lost.values()), "") or why_not_again(found)
            if why or (len(steps) > LONG and self._is_small(family, refs)):
                nodes = {id_: self._bytes(name, refs[id_], why) for id_ in family}
            else:
                nodes = self._recipe(name, found, steps, {id_: refs[id_] for id_ in family})
            now[family] = _Known(family, newest, nodes)
        recipes, self._recipes = self._recipes, []
        self._folder.keep_all(recipes)
        self._known[name] = {
            family: one
            for family, one in now.items()
            if not any(isinstance(node, NotKept) for node in one.nodes.values())
        }
        return {id_: node for one in now.values() for id_, node in one.nodes.items()}

    def _recipe(
        self, name: str, found: Slice, steps: list[Send | Put], refs: dict[int, Ref[Any]]
    ) -> dict[int, Node | NotKept]:
        """Say how buffers are made that may share memory; that is kept with all others."""
        sent = [step for step in found.steps if isinstance(step, Step)]
        digest = digest_of([step.data for step in sent])
        data = _encode(Recipe(self._session, name, steps, digest))
        self._recipes.append(data)
        key = key_of(data)
        code = any(kind_of(step.tag).__name__ in CODE for step in sent)
        return {id_: ["made", name, id_, *_spec(ref), key, code] for id_, ref in refs.items()}

    @property
    def _left_s(self) -> float:
        return max(self._until - time.monotonic(), 0.1)

    def _is_small(self, family: Iterable[int], refs: dict[int, Ref[Any]]) -> bool:
        arrays = [ref for id_ in family if isinstance(ref := refs[id_], AccelRef) and ref.known]
        is_array = len(arrays) == len(list(family))
        return is_array and sum(ref.nbytes for ref in arrays) <= FEW_BYTES

    def _bytes(self, name: str, ref: Ref[Any], why: str) -> Node | NotKept:
        """Keep the bytes of a buffer."""
        if not isinstance(ref, AccelRef):
            return NotKept(f"its messages cannot make it again: {why}")
        try:
            ref.result(self._left_s)
            if not ref.known:
                return NotKept("it is the answer of a function, and no array: keep its .result()")
            if ref.nbytes > MOST_BYTES:
                limit = f"a session keeps {size(MOST_BYTES)} of one"
                return NotKept(f"it is of {size(ref.nbytes)}, and {limit}; {why}")
            array = np.ascontiguousarray(ref.device.get(ref).result(self._left_s))
        except TimeoutError:
            return NotKept(f"it was not made within {WAIT_S:g} s, and its bytes are needed: {why}")
        except AccelError as error:
            return NotKept(f"its bytes cannot be had: {error}")
        data = array.reshape(-1).view(np.uint8).data if array.size else b""
        shape, dtype = _spec(ref)
        return ["kept", name, ref.id, shape, dtype, self._folder.keep(data), self._session]


def _spec(ref: Ref[Any]) -> tuple[list[int] | None, str | None]:
    """Return what is known of a handle: no dtype of what is no array, "" where it is not known."""
    if not isinstance(ref, AccelRef):
        return None, None
    return (list(ref.shape), str(ref.dtype)) if ref.known else (None, "")


def _step(step: Step | Restore, lineage: Lineage) -> Send | Put:
    if isinstance(step, Restore):
        point = step.checkpoint
        return Put(point.id, point.key, tuple(point.shape), str(point.dtype), tuple(point.axes))
    return Send(step.seq, lineage.content_key(step.seq) if step.in_arena else "")


def _why_not(ref: Ref[Any], devices: Collection[Device]) -> str:
    """Return why a handle has nothing to be kept; empty if it has."""
    if not any(ref.device is device for device in devices):
        return f"it is on {ref.device.name} of another system, and a session keeps its own devices'"
    if ref.failed:
        return f"its message failed: {ref.error}"
    if ref.generation == FREED:
        return "it was freed"
    return "" if ref.is_valid else f"it is {ref.standing}"


def why_not_again(found: Slice) -> str:
    """Return why these messages cannot be sent again; empty if they can."""
    for step in found.steps:
        if isinstance(step, Restore):
            if step.checkpoint.dtype not in NAMES:
                return "it was kept as no array"
        elif why := step.opaque or refusal(kind_of(step.tag)):
            return why
    return ""
