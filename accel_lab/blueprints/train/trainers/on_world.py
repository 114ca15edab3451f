"""What trainers on the ranks of a world have in common."""

from collections.abc import Mapping, Sequence
from typing import Unpack

import numpy.typing as npt

from accel_lab.blueprints.train.optimizers.optimizer import Buffers, Optimizer
from accel_lab.blueprints.train.trainers.options import Batches, Options
from accel_lab.blueprints.train.trainers.training import Training
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import AccelError
from accel_lab.libraries.collective import CollectiveAborted
from accel_lab.world.world import World


class OnWorld(Training):
    """Trains on all ranks of a world, which heals when one is lost."""

    def __init__(
        self,
        world: World,
        parameters: Mapping[str, npt.ArrayLike],
        optimizer: Optimizer,
        batches: Batches,
        **options: Unpack[Options],
    ) -> None:
        self.world = world
        self._devices = world.devices
        super().__init__(parameters, optimizer, batches, **options)

    @property
    def devices(self) -> Sequence[Device]:
        """The ranks, as they were when the state was last seen to."""
        return self._devices

    def shorten(self) -> None:
        """Do nothing: what a rank has lost is copied from another, or from a snapshot."""

    def _is_fault(self, error: AccelError) -> bool:
        return super()._is_fault(error) or self.world.devices != self._devices

    def _heal(self) -> None:
        self.world.ready()
        self._devices = self.world.devices
        super()._heal()


class InParts(OnWorld):
    """Trains on ranks of which each has its own part of the state.

    What a lost rank had nobody else has: training goes back to the last snapshot.
    """

    def total(self, numbers: Sequence[AccelRef]) -> Sequence[AccelRef]:
        """Return the sum of what the ranks have counted, on each rank."""
        wide = "float64" if any(x.dtype == "float64" for x in self._first.values()) else "float32"
        self.hear()
        summed = self.world.all_reduce([one.astype(wide) for one in numbers]).refs
        self.hear()
        self.require_all(summed)
        self.hear.sent.extend(summed)
        return summed

    def agreed(self, flags: Sequence[AccelRef]) -> AccelRef:
        """Return whether all ranks say so."""
        self.hear()
        agreed = self.world.all_reduce([one.astype("int32") for one in flags], "min").refs
        self.hear()
        self.require_all(agreed)
        self.hear.sent.extend(agreed)
        return agreed[0]

    def require_all(self, refs: Sequence[AccelRef]) -> None:
        """Refuse what the world has made when it had shrunk.

        Raises:
            CollectiveAborted: it has fewer ranks than the state is cut for.
        """
        if len(refs) != len(self._devices):
            text = f"{self.world.name} has {len(refs)} ranks, and had {len(self._devices)} before"
            raise CollectiveAborted(text)

    def _found(self) -> list[Buffers] | None:
        if len(self.states) != len(self.devices):
            return None
        found: list[Buffers] = []
        for device, state in zip(self.devices, self.states, strict=True):
            refs = state.values()
            if not all(ref.device is device and ref.is_valid for ref in refs):
                return None
            found.append(state)
        return found
