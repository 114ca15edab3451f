"""What trainers have in common: steps that are whole or not at all, and what follows a fault."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from accel_lab.actor.reply import Reply
from accel_lab.blueprints.train.autograd.variable import Variable
from accel_lab.blueprints.train.checks import require_count, require_floats, require_numerics
from accel_lab.blueprints.train.faults import Hearing, is_fault
from accel_lab.blueprints.train.optimizers.clipping import (
    LossScale,
    are_finite,
    clip_by_norm,
    sum_of_squares,
)
from accel_lab.blueprints.train.optimizers.optimizer import Buffers, Optimizer, slot_name
from accel_lab.blueprints.train.snapshots.in_memory import InMemory
from accel_lab.blueprints.train.snapshots.snapshot import Array, Asked, Keeper, Snapshot
from accel_lab.blueprints.train.telling import Telling, Watch
from accel_lab.blueprints.train.trainers.attempt import Attempt, Computed
from accel_lab.blueprints.train.trainers.layout import Layout
from accel_lab.blueprints.train.trainers.options import (
    Batch,
    Batches,
)
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.errors import AccelError, ContextLost, InvalidArgument
from accel_lab.libraries import array

R = TypeVar("R")
LOSSES = ":losses"
ATTEMPTS = 5
"""So often a step is tried before its fault is raised."""
_BACK_S = 120.0


class Training(Layout):
    """Takes step after step on one rank or several.

    A step makes new parameters, and the old ones are let go when it is whole. A fault in the middle
    of a step costs that step: it is done again, of the same parameters and the same batch. Where
    these are lost, too, the last snapshot is put on the device, and the steps since are done again.

    Attributes:
        step: how many steps are done.
        losses: that of each step, before it.
        norms: that of each step's gradients, if they are clipped.
        states: what each rank has at present, parameters and slots by name.
        scale: the loss scale, if there is one.
        faults: what made a step be done again, the last one last.
        hear: of the present step: called before it waits, so that its failures are told of once.
    """

    hear: Hearing

    def __init__(
        self,
        parameters: Mapping[str, npt.ArrayLike],
        optimizer: Optimizer,
        batches: Batches,
        *,
        clip_norm: float | None = None,
        loss_scale: LossScale | None = None,
        compute: str | None = None,
        snapshots: Keeper | None = None,
        every: int = 25,
    ) -> None:
        require_count(self, "every", every)
        require_numerics(self, clip_norm, loss_scale, compute)
        self.optimizer, self.batches = optimizer, batches
        self.clip_norm, self.compute, self.every = clip_norm, compute, every
        self.snapshots: Keeper = snapshots or InMemory()
        self._first: dict[str, Array] = require_floats(self, parameters)
        self._first_scale = loss_scale
        self.faults: list[AccelError] = []
        self.scale: LossScale | None = None
        self.states: list[Buffers] = []
        self._is_hurt = False
        self._telling = Telling(type(self).__name__, self.devices)
        self._begin()

    # The ranks.

    @property
    def name(self) -> str:
        """What views call it: its kind, and a number if it is not the first one."""
        return self._telling.name

    @property
    def names(self) -> Sequence[str]:
        """The names of the parameters."""
        return list(self._first)

    @property
    @abstractmethod
    def devices(self) -> Sequence[Device]:
        """Those that train, at present."""

    @abstractmethod
    def computed(self, batch: Batch, scale: float) -> Computed:
        """Send what computes the losses of a batch, and their gradients times a scale."""

    # Training.

    def run(self, until: int) -> list[float]:
        """Train until so many steps are done; return the losses of all of them.

        Blocks. The end is a snapshot, too.

        Raises:
            AccelError: a step failed, and not by a fault; or by one again and again.
            InvalidArgument: the folder for snapshots has those of another run.
        """
        return self._at(until, self._end)

    def parameters(self) -> dict[str, Array]:
        """Return the parameters as they are now; blocks."""
        return self._at(self.step, self._fetch)

    def _at(self, until: int, then: Callable[[], R]) -> R:
        """Return what a function does once so many steps are done, faults or not."""
        self.snapshots.require_own(self.step)
        tries, furthest = 0, self.step
        while True:
            try:
                if self._is_hurt:
                    self._heal()
                if self.step >= until:
                    return then()
                self._take_step()
            except AccelError as error:
                tries += 1
                self._is_hurt = True
                if tries == ATTEMPTS or not self._is_fault(error):
                    raise
                self.faults.append(error.copy())  # without the frames, which have handles
            if self.step > furthest:
                tries, furthest = 0, self.step

    def _end(self) -> list[float]:
        self.snapshots.flush()
        if self.step and self.snapshots.last != self.step:
            self._take_snapshot()
            self.snapshots.flush()
            if self.snapshots.last != self.step:
                raise ContextLost(f"a fault took the snapshot of step {self.step}")
        return self.losses[:]

    def _fetch(self) -> dict[str, Array]:
        return {
            name: self.joined(name, [np.asarray(reply.result()) for reply in replies])
            for name, replies in self._asked(self._first).items()
        }

    def _asked(self, names: Iterable[str]) -> dict[str, list[Reply[Array]]]:
        """Ask for the parts of parameters and slots that are joined to whole ones."""
        return {
            name: [
                state[name].device.get(state[name])
                for rank, state in enumerate(self.states)
                if name in state and self.is_kept(rank, name)
            ]
            for name in names
        }

    def resume(self) -> int:
        """Go on from the newest snapshot, if there is one; return its step.

        It may be of another number of devices.

        Raises:
            InvalidArgument: it is of other parameters, or of another optimizer.
        """
        snapshot = self.snapshots.newest()
        if snapshot is not None:
            self._restore(snapshot)
        return self.step

    def _take_step(self) -> None:
        with Watch(self.devices) as watch:
            batch = self.batches(self.step)
            attempt = self._whole(batch)
            loss = sum(np.asarray(ref.get()).item() * share for ref, share in attempt.losses)
            norm = None if attempt.norm is None else float(attempt.norm.get())
            finite = attempt.finite is None or bool(attempt.finite.get())
        # From here on the step is whole.
        rate = self.optimizer.rate_at(self.step)
        if finite:
            self.states = attempt.states
            self.updates += 1
        if self.scale is not None:
            self.scale = self.scale.after(finite=finite)
        if norm is not None:
            self.norms.append(norm)
        self.losses.append(loss)
        self.step += 1
        self._telling.tell(
            watch, self.step, batch, loss=loss, rate=rate, norm=norm, faults=self.faults
        )
        if self.step % self.every == 0:
            self._take_snapshot()
            self.shorten()

    def _whole(self, batch: Batch) -> Attempt:
        """Send a step, and wait until all of it is done or has failed.

        Raises:
            AccelError: what failed first; all else that failed was its consequence, or a fault's.
        """
        failures: list[AccelError] = []
        attempt = None
        self.hear = Hearing(self.devices)
        try:
            attempt = self._send(batch)
        except AccelError as error:
            failures.append(error)
        self.hear()
        for ref in self.hear.sent:
            try:
                ref.result()
            except AccelError as error:
                failures.append(error)
        self.hear.sent.clear()
        if attempt is None or failures:
            raise next((one for one in failures if not self._is_fault(one)), failures[0])
        return attempt

    @abstractmethod
    def shorten(self) -> None:
        """Have less to do again after a fault, where there is a way; called with each snapshot."""

    def _send(self, batch: Batch) -> Attempt:
        """Send all of a step."""
        sent = self.hear.sent
        scale = 1.0 if self.scale is None else self.scale.scale
        losses, gradients = self.computed(batch, scale)
        sent.extend(loss for loss, _ in losses)
        sent.extend(one for rank in gradients for one in rank.values())
        finite = norm = None
        if self.scale is not None:
            gradients = [
                {name: ref * (1 / scale) for name, ref in rank.items()} for rank in gradients
            ]
            finite = self.agreed([are_finite(list(rank.values())) for rank in gradients])
        if self.clip_norm is not None:
            counted = [self.counted(rank, one) for rank, one in enumerate(gradients)]
            squares = self.total([sum_of_squares(one) for one in counted])
            norms = [array.sqrt(one) for one in squares]
            norm, most = norms[0], self.clip_norm
            gradients = [
                clip_by_norm(rank, most, had)[0] for rank, had in zip(gradients, norms, strict=True)
            ]
        states = []
        for rank, (state, own) in enumerate(zip(self.states, gradients, strict=True)):
            states.append(self._updated(self.own(rank, state), own, state))
            self.hear()
        states = self.shared(states)
        self.hear()
        sent.extend(one for state in states for one in state.values())
        return Attempt(losses, states, finite, norm)

    def _updated(self, parameters: Buffers, gradients: Buffers, slots: Buffers) -> Buffers:
        """Return a rank's parameters and slots after a step."""
        rate = self.optimizer.rate_at(self.step)
        number = self.updates + 1
        made, kept = self.optimizer.step(number, parameters, gradients, slots, rate=rate)
        return made | kept

    def seen(self, variables: dict[str, Variable]) -> dict[str, Variable]:
        """Return parameters in the dtype that is computed in."""
        if self.compute is None:
            return variables
        return {name: one.astype(self.compute) for name, one in variables.items()}

    def put(self, device: Device, part: Batch) -> list[Any]:
        """Return a batch with its arrays on a device, floats in the dtype that is computed in."""
        given = []
        for one in part:
            if isinstance(one, np.ndarray):
                is_cast = self.compute is not None and one.dtype.kind == "f"
                given.append(device.put(one.astype(numpy_dtype(self.compute)) if is_cast else one))  # type: ignore[arg-type]
            else:
                given.append(one)
        return given

    # After a fault.

    def _is_fault(self, error: AccelError) -> bool:
        return is_fault(error)

    def _heal(self) -> None:
        """Have the same parameters again on each rank, or go back to the last snapshot."""
        for device in self.devices:
            device.ping().result(_BACK_S)
        states = self._found()
        if states is not None:
            self.states = states
        elif (snapshot := self.snapshots.newest()) is not None:
            self._restore(snapshot)
        else:
            self._begin()
        self._is_hurt = False

    def _found(self) -> list[Buffers] | None:
        """Return the present state of each rank; None where no rank has all of it."""
        whole = {}
        for state in self.states:
            refs = state.values()
            if all(ref.is_valid for ref in refs):
                whole[next(iter(refs)).device] = state
        if not whole:
            return None
        other = next(iter(whole.values()))
        return [
            whole.get(device) or {name: device.put(ref) for name, ref in other.items()}
            for device in self.devices
        ]

    # What is kept.

    def _begin(self) -> None:
        """Put the first parameters on the ranks."""
        self.step = self.updates = 0
        self.losses: list[float] = []
        self.norms: list[float] = []
        self.scale = self._first_scale
        self.states = self._put_cut(self._first)
        for rank, state in enumerate(self.states):
            state.update(self.optimizer.begin(self.own(rank, state)))

    def _put_cut(self, arrays: Mapping[str, Array]) -> list[Buffers]:
        """Put on each rank what it has of these."""
        states = []
        for rank, device in enumerate(self.devices):
            parts = {name: self.cut(rank, name, x) for name, x in arrays.items()}
            states.append({n: device.put(x) for n, x in parts.items() if x is not None})
        return states

    def _take_snapshot(self) -> None:
        """Have what there is now kept; does not wait for it."""
        names = dict.fromkeys(name for state in self.states for name in state)
        arrays = {LOSSES: np.array(self.losses, "float64")}
        if self.norms:
            arrays[f"{LOSSES}:norms"] = np.array(self.norms, "float64")
        facts: dict[str, float] = {"updates": self.updates}
        if self.scale is not None:
            facts |= {"scale": self.scale.scale, "good": self.scale.good}
        self.snapshots.take(Asked(self.step, arrays, self._asked(names), facts, self.joined))

    def _restore(self, snapshot: Snapshot) -> None:
        """Put a snapshot on the ranks.

        Raises:
            InvalidArgument: it is of other parameters, or of another optimizer.
        """
        arrays = {n: x for n, x in snapshot.arrays.items() if not n.startswith(LOSSES)}
        wanted = {}
        for name, x in self._first.items():
            for slot, shape in {"": x.shape, **self.optimizer.slots(x.shape)}.items():
                wanted[slot_name(name, slot)] = f"{x.dtype}{list(shape)}"
        found = {name: f"{x.dtype}{list(x.shape)}" for name, x in arrays.items()}
        if found != wanted:
            text = f"it has {found}, and there are {wanted}"
            raise InvalidArgument(f"a snapshot of step {snapshot.step} does not fit: {text}")
        self.states = self._put_cut(arrays)
        self.step, self.updates = snapshot.step, int(snapshot.facts["updates"])
        self.losses = [float(x) for x in snapshot.arrays[LOSSES]]
        self.norms = [float(x) for x in snapshot.arrays.get(f"{LOSSES}:norms", ())]
        if self._first_scale is not None:
            self.scale = self._first_scale._replace(
                scale=snapshot.facts.get("scale", self._first_scale.scale),
                good=int(snapshot.facts.get("good", 0)),
            )

    def __repr__(self) -> str:
        where = ", ".join(device.name for device in self.devices)
        last = f"loss {self.losses[-1]:.4g}, " if self.losses else ""
        return f"{type(self).__name__}(step {self.step}, {last}on {where})"
