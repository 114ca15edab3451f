"""What views see of worlds at a moment."""

from collections.abc import Iterable

from accel_lab.compute.events.samples import Underway, WorldLook, WorldsSampled
from accel_lab.world.flight import Flight
from accel_lab.world.world import World

LISTED = 8
"""So many operations of a world are told one by one."""


def look(worlds: Iterable[World]) -> list[WorldsSampled]:
    """Return one sample of those worlds that are not closed, and none where all are.

    Any thread, does not block.
    """
    looks = tuple(_look(world) for world in worlds if world.state != "closed")
    return [WorldsSampled(worlds=looks)] if looks else []


def _look(world: World) -> WorldLook:
    flights = list(world.in_flight.values())
    return WorldLook(
        name=world.name,
        state=world.state,
        epoch=world.epoch,
        devices=tuple(device.name for device in world.devices),
        flights=tuple(map(_underway, flights[:LISTED])),
        unlisted=max(0, len(flights) - LISTED),
        nbytes=sum(flight.nbytes for flight in flights),
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
