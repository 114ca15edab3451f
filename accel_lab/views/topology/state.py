"""What the topology view draws, as plain values: `widgets/topology/draw.js` draws the same.

A state is `{lab, devices, rows?, islands?, measured?, stale?, closed}`; what is unknown, empty or
none is left out. `rows` has a row for each device, and a cell for each in it, null where that is
the same: `{link, speed?, share?, way?, stale?, apart?}`. A share is by the fastest cell, up to 1.
"""

from accel_lab.compute.events.samples import PeerLook
from accel_lab.display.sizes import size
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.view import State


def state_of(scene: Scene) -> State:
    """Fold a scene into plain values."""
    name = "" if scene.tree is None else scene.tree.name
    state: State = {"lab": name, "devices": [], "closed": scene.closed}
    if (peers := scene.peers) is None:
        return state
    state["devices"] = list(peers.devices)
    if not peers.links:
        return state
    fastest = max(one.gb_per_s for one in peers.links)
    cells = {(one.source, one.target): _cell(one, fastest) for one in peers.links}
    state["rows"] = [[cells.get((a, b)) for b in peers.devices] for a in peers.devices]
    state["islands"] = [list(island) for island in peers.islands]
    sizes = sorted({one.nbytes for one in peers.links if one.gb_per_s})
    optional = {
        "measured": " and ".join(map(size, sizes)),
        "stale": sum(1 for one in peers.links if one.stale),
    }
    return state | {name: value for name, value in optional.items() if value}


def _cell(one: PeerLook, fastest: float) -> State:
    cell: State = {"link": one.link}
    if not one.reachable:
        cell["apart"] = True
    if one.gb_per_s:
        cell["speed"] = f"{one.gb_per_s:.3g} GB/s"
        cell["share"] = round(one.gb_per_s / fastest, 3)
        cell["way"] = one.way
    return cell | ({"stale": True} if one.stale else {})
