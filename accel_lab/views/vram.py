"""The memory of every device: a strip of its blocks by address, and a table of the largest.

A strip shows a bounded number of blocks, the largest; neighbours among the others are drawn as one
piece that says how many they are. So a state is small however many buffers there are, and its
pieces always add up to what is in use.
"""

from collections.abc import Iterator
from itertools import pairwise
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from accel_lab.compute.events.samples import Block, KeptObject, MemorySampled
from accel_lab.compute.events.tree import Node
from accel_lab.compute.message.buffer import Ref
from accel_lab.compute.message.service import in_context
from accel_lab.compute.residency import kept_objects
from accel_lab.compute.residency.holdings import ContextMemory
from accel_lab.compute.residency.notebook_names import handle_in, notebook
from accel_lab.display import table
from accel_lab.display.counts import counted
from accel_lab.display.sizes import memory, size
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.views.scene.observer import Lab, Source, Want
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show

if TYPE_CHECKING:
    from accel_lab.system import System

LISTED = 128
"""How many blocks are listed, of all devices together."""
OBJECTS = 30
"""How many objects of a device are listed, the largest."""
AT_LEAST = 8
"""How many blocks of a device are listed, however many devices there are."""
PADDING_BYTES = 64 << 10
"""What lies between two blocks is called a gap from this size on; less is alignment."""
KINDS = 12
"""How many kinds of owners are summed up, the largest."""
ROWS = 20
"""How many blocks are drawn as text and in the table without a front end."""
_BLOCKS = ("Device", "Buffers", "Owner", "Array", "Size", "Generation", "Kept by")
_OBJECTS = ("Device", "Object", "Type", "Size", "Generation", "Kept by")
_DEVICES = ("Device", "Generation", "In use", "Blocks", "A new block, at most", "Lost but kept")
_NUMBERS = {"Size", "Blocks"}
_HEAD = "Objects of %%gpu cells; what they hold may be in blocks, too"


class VramView(View):
    """The memory of a system's devices."""

    name = "vram"
    wants: ClassVar[frozenset[Want]] = frozenset({"memory"})
    _said = ""  # what became of the last command

    def __init__(self, source: Lab | Source) -> None:
        super().__init__(source)
        self._folded: tuple[list[object], object, State] = [], None, {}

    def fold(self, scene: Scene) -> State:
        """Fold the newest samples: what `widgets/vram/draw.js` says of a state."""
        state = self._state(scene).copy()
        if self.source.lab is not None and not scene.closed:
            state["acts"] = True
            if self._said:
                state["said"] = self._said
        return state

    def _state(self, scene: Scene) -> State:
        """Return the state of the samples; folds are more frequent than these."""
        samples: list[object] = [*scene.memory.values(), *scene.lost.values()]
        devices = [(node.name, node.state, node.generation) for node in _nodes(scene)]
        name = "" if scene.tree is None else scene.tree.name
        mark = (devices, name, scene.closed, scene.unrecorded.copy())
        before = self._folded
        if (
            before[1] != mark
            or len(before[0]) != len(samples)
            or not all(map(is_, before[0], samples))
        ):
            self._folded = samples, mark, state_of(scene)
        return self._folded[2]

    def text(self, state: State) -> str:
        """Draw a line for each device, and the largest blocks as aligned columns."""
        return text(state)

    def html(self, state: State) -> str:
        """Draw a table of the devices and one of the largest blocks."""
        return html(state)

    # What the buttons do.

    def do_free(self, device: str, id: int) -> None:  # noqa: A002 - as the message calls it
        """Free a buffer; using a handle of it later raises StaleRef.

        Returns at once: it goes after what was sent before.

        Raises:
            InvalidArgument: no name of the notebook holds the buffer.
            AccelError: the device takes no messages.
        """
        ref = self._handle(device, id)
        ref.free()
        ping = ref.device.ping()  # the freed go with the next batch

        def done() -> None:
            self._say(device, id, "is freed; what uses it now fails with StaleRef", ping.error)

        ping.add_waiter(done)

    def do_checkpoint(self, device: str, id: int) -> None:  # noqa: A002 - as the message calls it
        """Keep a buffer's contents on the host, so that a loss does not take them.

        Blocks for room in the arena, not for the copy.

        Raises:
            InvalidArgument: no name of the notebook holds the buffer, or the system does not make
                buffers again.
            AccelError: the device takes no messages, or there is no room.
        """
        ref = self._handle(device, id)
        try:
            kept = ref.device.checkpoint(ref)
        except AccelError as error:
            self._say(device, id, "", error)
            raise

        def done() -> None:
            self._say(device, id, "is checkpointed: its contents survive a loss", kept.error)

        kept.add_waiter(done)

    def do_drop(self, device: str, space: str, name: str) -> None:
        """Have `%%gpu` cells forget an object; what uses it later raises StaleRef.

        Returns at once: it goes after what was sent before.

        Raises:
            InvalidArgument: the view is of something that is over.
            AccelError: the device takes no messages.
        """
        where = self._lab().device(device)
        dropped = where.run(ContextMemory.drop, in_context(ContextMemory), space, name)
        kept_objects.forget(where, space, name)

        def done() -> None:
            error = dropped.error
            outcome = "is dropped; what uses it now fails with StaleRef"
            self._said = f"Object {name} of {device} " + (
                outcome if error is None else f"was left as it is: {error}"
            )

        dropped.add_waiter(done)

    def _lab(self) -> "System":
        lab = cast("System | None", self.source.lab)
        if lab is None:
            raise InvalidArgument("what is shown is over: there is nothing to act upon")
        return lab

    def _handle(self, device: str, id_: int) -> Ref[Any]:
        ref = handle_in(notebook(), self._lab().device(device), id_)
        if ref is None:
            error = InvalidArgument("no name of the notebook holds its handle")
            self._say(device, id_, "", error)
            raise error
        return ref

    def _say(self, device: str, id_: int, done: str, error: AccelError | None) -> None:
        outcome = done if error is None else f"was left as it is: {error}"
        self._said = f"Buffer {id_} of {device} {outcome}"


def vram(lab: Lab | Source, *, rate_hz: float = DEFAULT_HZ) -> VramView:
    """Return the memory of a system's devices; display it as the last value of a cell.

    In a Jupyter kernel with the `lab` extra it is a widget, elsewhere text or tables of what was
    seen last. Memory is looked at twice a second while there is such a view.

    Parameters:
        lab: the system, or a recording of one.
        rate_hz: how often it may update while something changes, at most 30.

    Raises:
        ValueError: the rate is not positive.
    """
    return show(VramView, lab, rate_hz=rate_hz)


def kind_of(owner: str) -> str:
    """Return the kind of message of an owner: "Gemm" of "Gemm #12"."""
    return owner.partition(" #")[0]


def state_of(scene: Scene) -> State:
    """Fold a scene into plain JSON values; `widgets/vram/draw.js` says what they are."""
    nodes = {node.name: node for node in _nodes(scene)}
    names = list(dict.fromkeys((*nodes, *scene.memory)))
    listed = max(AT_LEAST, LISTED // max(1, len(names)))
    kinds: dict[str, int] = {}
    for sample in scene.memory.values():
        for block in sample.blocks:
            kind = kind_of(block.owner)
            kinds[kind] = kinds.get(kind, 0) + block.nbytes
    state: State = {
        "lab": "" if scene.tree is None else scene.tree.name,
        "devices": [_device(name, scene, nodes.get(name), listed) for name in names],
        "kinds": sorted(kinds.items(), key=lambda item: -item[1])[:KINDS],
        "closed": scene.closed,
    }
    for topic, name in (("memory", "unrecorded"), ("addresses", "unplaced")):
        if topic in scene.unrecorded:
            state[name] = scene.unrecorded[topic]
    return state


def _nodes(scene: Scene) -> list[Node]:
    actors = () if scene.tree is None else scene.tree.children
    return [node for node in actors if node.kind == "device"]


def _device(name: str, scene: Scene, node: Node | None, listed: int) -> State:
    device: State = {"name": name}
    if node is not None:
        device["state"] = node.state
    sample = scene.memory.get(name)
    if sample is None:
        return device
    device |= {"generation": sample.generation, "used": sample.used_bytes}
    if node is not None and node.generation not in (None, sample.generation):
        device["now"] = node.generation
    if sample.total_bytes is not None:
        device["total"] = sample.total_bytes
    if sample.free_bytes is not None:
        device["room"] = max(0, sample.free_bytes)
    device["count"] = len(sample.blocks) + sample.unlisted
    if sample.objects:
        device["objects"] = [_object(one) for one in sample.objects[:OBJECTS]]
        device["object_count"] = len(sample.objects)
    device["strip"] = _strip(sample, listed)
    lost = [block for block in scene.lost.get(name, (0, ()))[1] if block.kept_by]
    if lost:
        lost.sort(key=lambda block: -block.nbytes)
        device["lost_in"] = scene.lost[name][0]
        device["lost_bytes"] = sum(block.nbytes for block in lost)
        device["lost_count"] = len(lost)
        device["lost"] = [_block(block) for block in lost[:listed]]
    return device


def _strip(sample: MemorySampled, listed: int) -> list[State]:
    """Return the pieces of a strip, in address order: blocks, and bundles of small ones."""
    blocks = sorted(sample.blocks, key=lambda block: block.address)
    largest = sorted(range(len(blocks)), key=lambda i: -blocks[i].nbytes)[:listed]
    chosen = set(largest)
    gaps = {
        i
        for i, (before, block) in enumerate(pairwise(blocks), 1)
        if block.address - before.address - before.nbytes >= PADDING_BYTES
    }
    pieces: list[State] = []
    for i, block in enumerate(blocks):
        if i in chosen:
            pieces.append(_block(block))
        elif pieces and "small" in pieces[-1]:
            pieces[-1]["small"] += 1
            pieces[-1]["bytes"] += block.nbytes
            continue
        else:
            pieces.append({"small": 1, "bytes": block.nbytes})
        if i in gaps:
            pieces[-1]["gap"] = True
    if sample.unlisted:
        rest = sample.used_bytes - sum(block.nbytes for block in blocks)
        pieces.append({"small": sample.unlisted, "bytes": max(0, rest), "unplaced": True})
    return pieces


def _object(one: KeptObject) -> State:
    return {
        "name": one.name,
        "space": one.space,
        "what": one.type,
        "bytes": one.nbytes,
        "kept": list(one.kept_by),
    }


def _block(block: Block) -> State:
    drawn: State = {
        "ids": list(block.ids),
        "owner": block.owner,
        "what": f"{block.dtype}[{', '.join(map(str, block.shape))}]",
        "bytes": block.nbytes,
    }
    if block.kept_by:
        drawn["kept"] = list(block.kept_by)
    return drawn


# Without a front end.


def text(state: State) -> str:
    """Draw a state as lines of text."""
    rows = list(_rows(state))
    lines = table.as_text(_BLOCKS, [row.cells for row in rows[:ROWS]], _NUMBERS)
    devices = [_sentence(device, state) for device in state["devices"]]
    told = [_caption(state), *devices, *(lines if rows else ()), *_unlisted(state)]
    if objects := list(_objects(state)):
        told += [
            _HEAD,
            *table.as_text(_OBJECTS, objects[:ROWS], _NUMBERS),
            *_unlisted_objects(state),
        ]
    return "\n".join(told)


def html(state: State) -> str:
    """Draw a state as two tables, the second for blocks, without style or script."""
    devices = (_summary(device) for device in state["devices"])
    drawn = table.as_html(_caption(state), _DEVICES, devices)
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
    ids, kept = ", ".join(map(str, block["ids"])), ", ".join(block.get("kept", ()))
    cells = (device, ids, block["owner"], block["what"], size(block["bytes"]), generation, kept)
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


def _summary(device: State) -> tuple[str, ...]:
    """What stands in each column about a device."""
    if "generation" not in device:
        return (device["name"], "", "not seen yet", "", "", "")
    lost = f"{device['lost_count']} ({size(device['lost_bytes'])})" if "lost" in device else ""
    return (
        device["name"],
        str(device["generation"]),
        memory(device["used"], device.get("total")),
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
    if "lost" in device:
        lost = counted(device["lost_count"], "block")
        line += f"; {lost} of generation {device['lost_in']} lost but kept"
    return line
