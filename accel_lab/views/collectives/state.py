"""What the collectives view draws, as plain values: `widgets/collectives/draw.js` draws the same.

A state is `{lab, worlds, closed}`. A world is `{name, state, epoch, ranks, done, …}`; what is zero,
empty or unknown is left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from accel_lab.compute.events.collectives import CollectiveEnded, WorldFormed, WorldGivenUp
from accel_lab.compute.events.samples import Underway, WorldLook
from accel_lab.display.counts import counted
from accel_lab.display.sizes import size
from accel_lab.display.table import in_one_line
from accel_lab.libraries.collective.ring import steps
from accel_lab.views.scene.incidents import reason_of
from accel_lab.views.scene.scene import Scene
from accel_lab.views.scene.worlds import WorldPast
from accel_lab.views.widget.view import State

OPERATIONS = 6
BARS = 48
HEALINGS = 6
ARRIVALS = 32
"""Of so many of the newest operations of all ranks the arrivals are compared."""
FEWEST = 3
LATE = 0.25
"""Of what an operation takes: who lets the others wait longer is called a straggler."""
LINE = 160
RINGED = 12
"""Of rings of more ranks the steps are not drawn: there is no room for their numbers."""
_COARSE_S = 10.0
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_THREE_DIGITS = 0.9995

_DEVICE = {
    "restarting": "lost",
    "circuit open": "lost",
    "stopped": "lost",
    "starting": "starting",
    "half-open": "starting",
    "suspended": "suspended",
}
"""What is said of a rank whose device does not run."""
_AT_REST = {"whole": "ready", "forming": "joining"}


def state_of(scene: Scene) -> State:
    """Fold a scene into plain values."""
    devices = () if scene.tree is None else scene.tree.children
    states = {node.name: node.state for node in devices if node.kind == "device"}
    worlds = [
        _world(past.look, past, states, scene)
        for past in scene.worlds.shown().values()
        if past.look is not None
    ]
    name = "" if scene.tree is None else scene.tree.name
    return {"lab": name, "worlds": worlds, "closed": scene.closed}


def duration(seconds: float) -> str:
    """Write how long something took: 0 s, 340 µs, 12.5 ms, 1.2 s."""
    for unit_s, unit in _UNITS:
        if seconds >= _THREE_DIGITS * unit_s:
            return f"{float(f'{seconds / unit_s:.3g}'):g} {unit}"
    return f"{seconds * 1e9:.0f} ns" if seconds > 0 else "0 s"


def bandwidth(gb_s: float) -> str:
    """Write a bandwidth in the unit of the vendors, powers of ten."""
    return f"{gb_s:.3g} GB/s" if gb_s >= 1 else f"{gb_s * 1e3:.3g} MB/s"


def _world(look: WorldLook, past: WorldPast, states: Mapping[str, str], scene: Scene) -> State:
    state = look.state if past.in_use and not scene.closed else "closed"
    flight = look.flights[0] if look.flights else None
    whole = [
        one
        for one in past.ended
        if not one.failure and len(one.waited_s) == len(look.devices) and min(one.waited_s) >= 0
    ][-ARRIVALS:]
    waits = [median(column) for column in zip(*(one.waited_s for one in whole), strict=True)]
    ranks = [
        {"device": device, "word": _word(state, device, flight, states.get(device, "running"))}
        | (_arrival(flight, device) if flight else {})
        | ({"usual": _after(waits[rank])} if len(whole) >= FEWEST else {})
        for rank, device in enumerate(look.devices)
    ]
    optional = {
        "op": _operation(flight, look, scene.at) if flight else None,
        "late": _straggler(look.devices, whole, waits) if len(whole) >= FEWEST else None,
        "ended": [_ended(one, look.devices) for one in list(past.ended)[: -OPERATIONS - 1 : -1]],
        "bus": _bus(past, look.link_gb_s),
        "ring": _ring(flight or (past.ended[-1] if past.ended else None), look.devices),
        "failed": past.failed,
        "healing": list(_healing(past))[:HEALINGS],
    }
    world: State = {"name": look.name, "state": state, "epoch": look.epoch, "ranks": ranks}
    world["done"] = past.done
    return world | {name: value for name, value in optional.items() if value}


def _word(state: str, device: str, flight: Underway | None, of_device: str) -> str:
    """Say in a word how a rank is."""
    if state == "closed":
        return "out"
    if of_device in _DEVICE:
        return _DEVICE[of_device]
    if flight is not None and device in flight.ranks:
        if flight.arrived_s[flight.ranks.index(device)] >= 0:
            return "arrived"
        return "waited for" if flight.began else "queued"
    return _AT_REST.get(state, "out")


def _arrival(flight: Underway, device: str) -> State:
    """Say how long after the first one a rank has begun."""
    if device not in flight.ranks:
        return {}
    arrived = flight.arrived_s[flight.ranks.index(device)]
    return {"after": _after(arrived)} if arrived >= 0 else {}


def _after(seconds: float) -> str:
    """Say how long after the first one a rank begins."""
    return f"+{duration(seconds)}" if seconds else "first"


def _operation(flight: Underway, look: WorldLook, now: float) -> State:
    missing = [
        device
        for device, arrived in zip(flight.ranks, flight.arrived_s, strict=True)
        if arrived < 0
    ]
    state: State = {"call": flight.call, "what": _what(flight), "group": flight.group}
    more = len(look.flights) + look.unlisted - 1
    seconds = max(0.0, now - flight.began) if flight.began else 0.0
    # Coarse, so that a state that looks the same is the same.
    seconds = round(seconds, 1) if seconds < _COARSE_S else float(int(seconds))
    optional = {
        "algorithm": flight.algorithm,
        "for": (duration(seconds) if seconds else "< 0.1 s") if flight.began else "",
        "missing": missing if flight.began else [],
        "more": more,
        "bytes": size(look.nbytes) if more else "",
    }
    return state | {name: value for name, value in optional.items() if value}


def _what(one: Underway | CollectiveEnded) -> str:
    """Say of what an operation is: 4 MiB float32."""
    return f"{size(one.nbytes)} {one.dtype}".strip() if one.nbytes or one.dtype else ""


def _straggler(
    devices: Sequence[str], whole: Sequence[CollectiveEnded], waits: Sequence[float]
) -> State:
    """Say who usually arrives last."""
    rank = max(range(len(waits)), key=waits.__getitem__)
    share = waits[rank] / max(1e-9, median(one.seconds for one in whole))
    late: State = {"device": devices[rank], "by": duration(waits[rank]), "of": len(whole)}
    return late | ({"warn": True} if share > LATE else {}) if waits[rank] > 0 else {}


def _ended(one: CollectiveEnded, devices: Sequence[str]) -> State:
    state: State = {"group": one.group, "call": one.call, "what": _what(one)}
    last = max(range(len(one.waited_s)), key=one.waited_s.__getitem__, default=0)
    all_came = len(one.waited_s) == len(devices) > 1 and min(one.waited_s) >= 0
    optional = {
        "algorithm": one.algorithm,
        "took": "" if one.failure else duration(one.seconds),
        "bandwidth": bandwidth(one.bus_gb_s) if one.bus_gb_s else "",
        "last": f"{devices[last]}, +{duration(one.waited_s[last])}" if all_came else "",
        "failure": in_one_line(one.failure, LINE),
    }
    return state | {name: value for name, value in optional.items() if value}


def _ring(one: Underway | CollectiveEnded | None, devices: Sequence[str]) -> State:
    """Return the steps of an operation that goes around the ring of all ranks, if it does."""
    size_ = len(devices)
    if one is None or one.algorithm != "ring" or len(one.ranks) != size_ or size_ > RINGED:
        return {}
    found = [[step.phase, list(step.parts)] for step in steps(one.call, size_)]
    if not found:
        return {}
    return {"call": one.call, "part": size(-(-one.nbytes // size_)), "steps": found}


def _bus(past: WorldPast, link_gb_s: float) -> State:
    """Return the bandwidths of the newest operations, as shares of the best of them."""
    measured = [one.bus_gb_s for one in past.ended if one.bus_gb_s][-BARS:]
    if not measured:
        return {}
    best = max(measured)
    bars = [round(one / best, 3) for one in measured]
    bus: State = {"bars": bars, "newest": bandwidth(measured[-1]), "best": bandwidth(best)}
    return bus | ({"link": bandwidth(link_gb_s)} if link_gb_s else {})


def _healing(past: WorldPast) -> Iterator[State]:
    """Yield what became of the communicator, the newest first."""
    before: tuple[str, ...] = ()
    told: list[State] = []
    for fact in past.healings:
        row: State = {"at": fact.at, "epoch": fact.epoch}
        if isinstance(fact, WorldFormed):
            fresh = fact.devices != before
            names = f" of {_names(fact.devices)}" if fresh else ""
            row |= {"word": "formed", "what": f"in {duration(fact.seconds)}{names}"}
            before = fact.devices
        else:
            word = "given up" if isinstance(fact, WorldGivenUp) else "broken"
            row |= {"word": word, "what": in_one_line(_why(fact.reason), LINE)}
        told.append(row)
    return reversed(told)


def _names(devices: Sequence[str]) -> str:
    named = ", ".join(devices)
    return named if len(named) <= LINE else counted(len(devices), "device")


def _why(reason: str) -> str:
    """Return a reason in which a loss is told once."""
    device, lost, cause = reason.partition(" has lost its context: ")
    return f"{device} lost its context: {reason_of(cause)}" if lost else reason
