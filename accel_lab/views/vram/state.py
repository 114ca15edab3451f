"""The state of the memory view: a strip of each device's blocks by address, as plain values.

A strip shows a bounded number of blocks, the largest; neighbours among the others are drawn as one
piece that says how many they are. So a state is small however many buffers there are, and its
pieces always add up to what is in use.
"""

from collections.abc import Iterator
from itertools import pairwise

from accel_lab.compute.events.lifecycle import ContextLost
from accel_lab.compute.events.samples import Block, KeptObject, MemorySampled
from accel_lab.compute.events.tree import Node
from accel_lab.views.scene.scene import Scene
from accel_lab.views.vram.history import history
from accel_lab.views.widget.view import State

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


def kind_of(owner: str) -> str:
    """Return the kind of message of an owner: "Gemm" of "Gemm #12"."""
    return owner.partition(" #")[0]


def state_of(scene: Scene) -> State:
    """Fold a scene into plain JSON values; `widgets/vram/draw.js` says what they are."""
    nodes = {node.name: node for node in device_nodes(scene)}
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
    if scene.tree is not None and scene.tree.kept:
        state["kept"] = [list(one) for one in scene.tree.kept]
    for topic, name in (("memory", "unrecorded"), ("addresses", "unplaced")):
        if topic in scene.unrecorded:
            state[name] = scene.unrecorded[topic]
    return state


def device_nodes(scene: Scene) -> list[Node]:
    """Return the devices of a scene's tree."""
    actors = () if scene.tree is None else scene.tree.children
    return [node for node in actors if node.kind == "device"]


def _device(name: str, scene: Scene, node: Node | None, listed: int) -> State:
    device: State = {"name": name}
    if node is not None:
        device["state"] = node.state
        if node.kept:
            device["kept"] = [list(one) for one in node.kept]
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
    if "memory" not in scene.unrecorded and (
        told := history(scene.levels.get(name, ()), _faults(name, scene))
    ):
        device["history"] = told
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


def _faults(device: str, scene: Scene) -> Iterator[float]:
    """Yield when a device lost its context, and nobody had asked for that."""
    for _, fact in scene.facts:
        if isinstance(fact, ContextLost) and fact.device == device and not fact.asked:
            yield fact.at


def _strip(sample: MemorySampled, listed: int) -> list[State]:
    """Return the pieces of a strip, in address order: blocks, and bundles of small ones."""
    blocks = sorted(sample.blocks, key=lambda block: block.address)
    largest = sorted(range(len(blocks)), key=lambda i: -blocks[i].nbytes)[:listed]
    chosen = set(largest)
    apart = (after.address - before.address - before.nbytes for before, after in pairwise(blocks))
    gaps = {i: nbytes for i, nbytes in enumerate(apart, 1) if nbytes >= PADDING_BYTES}
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
            pieces[-1]["gap"] = gaps[i]
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
    if block.memory:
        drawn["memory"] = block.memory
    if block.kept_by:
        drawn["kept"] = list(block.kept_by)
    return drawn
