"""A scene as facts: whoever folds them has the scene."""

import sys
from collections.abc import Iterator

from accel_lab.actor.events import Event
from accel_lab.compute.events.patterns import PatternsSampled
from accel_lab.compute.events.samples import (
    LevelsSampled,
    MemorySampled,
    NotebookSampled,
    Slice,
    SystemEnded,
    TreeSampled,
    WorkTraced,
)
from accel_lab.views.scene.scene import Scene

SLICES = 4_000
CELLS = 200
WAITS = 1_000
LEVELS = 1_000


def recap(scene: Scene) -> Iterator[Event]:
    """Yield the facts that make a scene, with the newest of each; who holds its lock.

    Older slices are told as dropped.
    """
    for _, fact in scene.facts:
        yield fact
    yield from _memory(scene)
    yield from _work(scene)
    yield from beside_work(scene, cells=CELLS, waits=WAITS, levels=LEVELS)
    for samples in scene.health.values():
        yield from samples
    yield from beside_devices(scene)
    if scene.tree is not None:
        yield TreeSampled(at=scene.at, root=scene.tree)
    if scene.closed:
        yield SystemEnded(at=scene.at, name=scene.tree.name if scene.tree is not None else "")


def beside_devices(scene: Scene) -> Iterator[Event]:
    """Yield what is known of worlds, trainers, chosen arrays, patterns and links."""
    yield from scene.worlds.facts(scene.at)
    yield from scene.trainings.facts()
    yield from scene.observations.facts()
    if scene.patterns:
        yield PatternsSampled(at=scene.at, patterns=scene.patterns)
    if scene.peers is not None:
        yield scene.peers


def beside_work(
    scene: Scene, *, cells: int = sys.maxsize, waits: int = sys.maxsize, levels: int = sys.maxsize
) -> Iterator[LevelsSampled | NotebookSampled]:
    """Yield what a timeline draws beside the work, so many of the newest of each."""
    for device, kept in scene.levels.items():
        newest = tuple(kept)[-levels:]
        yield LevelsSampled(at=scene.at, device=device, levels=newest)
    if scene.cells or scene.waits:
        yield NotebookSampled(
            at=scene.at,
            cells=tuple(scene.cells.values())[-cells:],
            waits=tuple(scene.waits.values())[-waits:],
        )


def _memory(scene: Scene) -> Iterator[MemorySampled]:
    for device, sample in scene.memory.items():
        if device in scene.lost:
            generation, blocks = scene.lost[device]
            yield MemorySampled(
                at=sample.at,
                device=device,
                generation=generation,
                used_bytes=sum(block.nbytes for block in blocks),
                total_bytes=sample.total_bytes,
                blocks=blocks,
            )
        yield sample


def _work(scene: Scene) -> Iterator[WorkTraced]:
    done: dict[str, list[Slice]] = {device: [] for device in (*scene.running, *scene.untraced)}
    skipped: dict[str, int] = dict(scene.untraced)
    first = len(scene.slices) - SLICES
    for number, (_, device, one) in enumerate(scene.slices):
        if number < first:
            skipped[device] = skipped.get(device, 0) + 1
        else:
            done.setdefault(device, []).append(one)
    for device, slices in done.items():
        yield WorkTraced(
            at=scene.at,
            device=device,
            generation=scene.generation_of_work(device),
            done=tuple(slices),
            running=scene.running.get(device, ()),
            dropped=skipped.get(device, 0),
            cells=scene.cells_of(device, (*slices, *scene.running.get(device, ()))),
        )
