"""What happens to worlds and in them, as facts on the event stream."""

from typing import ClassVar

from accel_lab.actor.events import Event


class WorldFormed(Event, frozen=True):
    """The ranks of a world have a communicator; with the second epoch it has healed.

    `devices` are the ranks in their order, `seconds` how long it took since the one before was
    lost, or since the world was made.
    """

    world: str
    epoch: int
    devices: tuple[str, ...]
    seconds: float


class WorldBroken(Event, frozen=True):
    """The communicator of an epoch is lost, and why; the world makes another one by itself."""

    world: str
    epoch: int
    reason: str


class WorldGivenUp(Event, frozen=True):
    """A world could make no communicator; the next collective operation tries again."""

    world: str
    epoch: int
    reason: str


class CollectiveEnded(Event, frozen=True):
    """A collective operation is done, or was aborted.

    `group` is its number in its system, as the journal has it. `nbytes` are those of the whole
    array, as `nccl-tests` counts them. `waited_s` says by rank how long after the first one each
    began, -1 where it never did. `seconds` runs from the first begin to the end of all. `bus_gb_s`
    is the bandwidth that the slowest link has to have for that, 0 where none is defined. `failure`
    is empty where it is done. `ranks` are the devices, in the order of `waited_s`.
    """

    is_frequent: ClassVar[bool] = True
    world: str
    epoch: int
    group: int
    call: str
    algorithm: str
    dtype: str
    nbytes: int
    waited_s: tuple[float, ...]
    seconds: float
    bus_gb_s: float
    failure: str = ""
    ranks: tuple[str, ...] = ()
