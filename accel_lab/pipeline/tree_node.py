"""A pipeline that runs, as the tree of its devices' system shows it: a row, and one a stage."""

from accel_lab.compute.events.tree import Node
from accel_lab.pipeline.progress import Progress, StageProgress

FELT_S = 0.05
"""A wait below this is not told: every stage waits a moment now and then."""


def node_of(progress: Progress, root: str, name: str) -> Node:
    """Return it, under this name below the root."""
    path = f"{root}/{name}"
    stages = []
    for position, stage in enumerate(progress.stages):
        is_first = all(stage.name != other.name for other in progress.stages[:position])
        stages.append(_stage(stage, path, stage.name if is_first else f"{stage.name} {position}"))
    *_, last = progress.stages
    return Node(
        name=name,
        path=path,
        kind="actor",
        state="running",
        mailbox=sum(one.mailbox for one in stages),
        in_flight=sum(one.in_flight for one in stages),
        restarts=sum(one.restarts for one in stages),
        detail=f"pipeline of {len(stages)} stages; {last.passed:,} items came out",
        children=tuple(stages),
    )


def _stage(stage: StageProgress, path: str, name: str) -> Node:
    held = stage.waiting + stage.running + stage.done
    told = [f"on {', '.join(stage.devices) or 'the host'}", f"{held} of {stage.capacity} seats"]
    if stage.done:
        told.append(f"{stage.done} done, no room behind it")
    if stage.input_s >= FELT_S:
        told.append(f"lacked input for {stage.input_s:.1f} s")
    if stage.output_s >= FELT_S:
        told.append(f"lacked room for {stage.output_s:.1f} s")
    return Node(
        name=name,
        path=f"{path}/{name}",
        kind="actor",
        state="running",
        mailbox=stage.waiting,
        in_flight=stage.running,
        restarts=stage.reruns,
        detail="; ".join(told),
    )
