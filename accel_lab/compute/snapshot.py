"""A device as the tree shows it."""

from accel_lab.compute.keeper import DeviceKeeper
from accel_lab.compute.tree import Node


def node_of(keeper: DeviceKeeper, root: str) -> Node:
    """Return a device, its context and its library actors as they are now; any thread."""
    requests, process = keeper.requests, keeper.process
    state = requests.state
    path = f"{root}/{keeper.name}"
    counts = requests.by_library()
    libraries = tuple(
        Node(
            name=library,
            path=f"{path}/context/{library}",
            kind="library",
            state=state,
            in_flight=counts.get(library, 0),
            restarts=keeper.library_restarts.get(library, 0),
            detail=", ".join(
                f"{what} {count}" for what, count in keeper.statistics.get(library, {}).items()
            ),
        )
        for library in keeper.libraries
    )
    context = Node(
        name="context",
        path=f"{path}/context",
        kind="context",
        state=state,
        generation=requests.generation,
        in_flight=requests.in_flight,
        used_bytes=keeper.used_bytes,
        total_bytes=keeper.total_bytes,
        restarts=keeper.restarts,
        detail=f"process {process.pid}" if process is not None else str(keeper.cause or ""),
        children=libraries,
    )
    model = keeper.model if keeper.cause is None else f"{keeper.model}; last loss: {keeper.cause}"
    return Node(
        name=keeper.name,
        path=path,
        kind="device",
        state=state,
        generation=requests.generation,
        mailbox=requests.queued,
        in_flight=requests.in_flight,
        used_bytes=keeper.used_bytes,
        total_bytes=keeper.total_bytes,
        restarts=keeper.restarts,
        detail=model,
        children=(context,),
    )
