"""What views see of worlds at a moment."""

from collections.abc import Iterable

from accel_lab.compute.events.samples import Underway, WorldLook, WorldsSampled
from accel_lab.compute.peers.topology import P2pTopology
from accel_lab.world.flight import Flight
from accel_lab.world.world import World

LISTED = 8
"""So many operations of a world are told one by one."""


def look(worlds: Iterable[World], topology: P2pTopology | None = None) -> list[WorldsSampled]:
    """Return one sample of those worlds that are not closed, and none where all are.

    Any thread, does not block.

    Parameters:
        topology: what was measured of the links; None where nothing was.
    """
    looks = tuple(_look(world, topology) for world in worlds if world.state != "closed")
    return [WorldsSampled(worlds=looks)] if looks else []


def _slowest(world: World, topology: P2pTopology | None) -> float:
    """Return the least bandwidth from a rank to the next one; 0 where that is not known."""
    devices = world.devices
    if topology is None or len(devices) < 2:  # noqa: PLR2004 - a ring of one has no link
        return 0.0
    figures = [
        topology.bandwidth(one, devices[(rank + 1) % len(devices)])
        for rank, one in enumerate(devices)
    ]
    known = [one.gb_per_s for one in figures if one is not None and not one.stale]
    return min(known) if len(known) == len(devices) else 0.0


def _look(world: World, topology: P2pTopology | None) -> WorldLook:
    flights = list(world.in_flight.values())
    return WorldLook(
        name=world.name,
        state=world.state,
        epoch=world.epoch,
        devices=tuple(device.name for device in world.devices),
        flights=tuple(map(_underway, flights[:LISTED])),
        unlisted=max(0, len(flights) - LISTED),
        nbytes=sum(flight.nbytes for flight in flights),
        link_gb_s=_slowest(world, topology),
    )


def _underway(flight: Flight) -> Underway:
    arrived = flight.arrived_s.copy()  # ranks arrive meanwhile
    return Underway(
        group=flight.group,
        call=flight.call,
        algorithm=flight.algorithm,
        dtype=flight.dtype,
        nbytes=flight.nbytes,
        ranks=flight.ranks,
        arrived_s=tuple(arrived.get(rank, -1.0) for rank in range(len(flight.ranks))),
        began=flight.began_at,
    )
