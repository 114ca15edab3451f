"""Asynchronous training: workers pull parameters and push gradients, none waits for all others.

Li et al., "Scaling distributed machine learning with the parameter server", 2014; the bound on the
staleness is that of Ho et al., "More effective distributed ML via a stale synchronous parallel
parameter server", 2013, counted in pushes.
"""

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accel_lab.blueprints.train.autograd.gradients import gradients
from accel_lab.blueprints.train.autograd.variable import Variable
from accel_lab.blueprints.train.checks import require_floats, require_loss
from accel_lab.blueprints.train.faults import Hearing, is_fault
from accel_lab.blueprints.train.optimizers.optimizer import Buffers, Optimizer
from accel_lab.blueprints.train.parameter_server.compression import Compression
from accel_lab.blueprints.train.parameter_server.staleness import Push, may_push
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import AccelError, ArenaFull, InvalidArgument

ATTEMPTS = 5
"""So often a push is tried before its fault is raised."""
_BACK_S = 120.0


class Pulled(NamedTuple):
    """What a worker is at.

    Attributes:
        batch: the number of its batch.
        version: how many pushes had made the parameters.
        state: those parameters, on the server.
        history: how often the server had gone back.
    """

    batch: int
    version: int
    state: Buffers
    history: int


class Computed(NamedTuple):
    """A gradient on its worker.

    Attributes:
        loss: of the batch.
        parts: what travels, of each parameter.
        left: what does not, of each parameter.
    """

    loss: float
    parts: dict[str, Sequence[AccelRef]]
    left: Buffers


class AsyncParameterServer:
    """Has the parameters on one device, and takes gradients from others as they come.

    Each worker pulls the parameters, computes the gradient of the next batch, and pushes it; the
    optimizer takes a step for each push. A worker has a thread. Which push comes when depends on
    the devices, so two runs differ; `pushes` tells how it was.

    A worker that is lost computes its gradient again, of the parameters that it had pulled; what it
    had left out of earlier gradients is lost with it where the device rebuilds nothing. Where the
    parameters are lost, the server goes back to its last snapshot, which is in memory.

    Parameters:
        server: the device with the parameters.
        workers: the devices that compute; the server may be one of them.
        loss, parameters, optimizer, batches: as `Trainer` has them.
        staleness: how many pushes may come between a worker's pull and its push, at least one for
            each other worker; twice as many when not given. Who is too quick waits.
        compression: how gradients travel: `TopK`, `Int8` or `Float16`; whole when not given.
        every: after how many pushes there is a snapshot.

    Attributes:
        pushes: each gradient that was applied, in order.
        faults: what made a worker begin again, the last one last.
        sent_bytes: of all gradients that were pushed, as they travelled.
    """

    def __init__(
        self,
        server: Device,
        workers: Sequence[Device],
        loss: Callable[..., Variable],
        parameters: Mapping[str, npt.ArrayLike],
        optimizer: Optimizer,
        batches: Callable[[int], Sequence[Any]],
        *,
        staleness: int | None = None,
        compression: Compression | None = None,
        every: int = 25,
    ) -> None:
        kind = type(self).__name__
        least = len(workers) - 1
        if least < 0:
            raise InvalidArgument(f"{kind}: there are no workers; give one device at least")
        bound = 2 * least if staleness is None else staleness
        if type(bound) is not int or bound < least:
            text = f"staleness is {staleness!r}, and there are {least + 1} workers"
            raise InvalidArgument(f"{kind}: {text}; it is at least one less")
        if type(every) is not int or every < 1:
            raise InvalidArgument(f"{kind}: every is {every!r}; it is an integer from 1")
        self.server, self.workers = server, list(workers)
        self.loss, self.optimizer, self.batches = loss, optimizer, batches
        self.staleness, self.compression, self.every = bound, compression, every
        self._first = require_floats(self, parameters)
        self.pushes: list[Push] = []
        self.faults: list[AccelError] = []
        self.sent_bytes = 0
        self._news = threading.Condition()
        self._at: dict[int, Pulled] = {}
        self._left: list[Buffers] = [{} for _ in self.workers]
        self._history = 0
        self._failed: BaseException | None = None
        self._snapshot: tuple[int, dict[str, npt.NDArray[Any]]] | None = None
        self._state = self._begun()

    @property
    def losses(self) -> list[float]:
        """That of each push, before it."""
        return [push.loss for push in self.pushes]

    def run(self, until: int) -> list[float]:
        """Train until so many gradients were pushed; return the losses of all of them.

        Blocks.

        Raises:
            AccelError: a push failed, and not by a fault; or by one again and again.
        """
        self._failed = None
        threads = [
            threading.Thread(
                target=self._work, args=(number, until), name=f"worker {number}", daemon=True
            )
            for number in range(len(self.workers))
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException as error:  # as Ctrl-C: what was begun is finished
            self._fail(error)
            for thread in threads:
                thread.join()
            raise
        if self._failed is not None:
            raise self._failed
        return self.losses

    def parameters(self) -> dict[str, npt.NDArray[Any]]:
        """Return the parameters as they are now; blocks."""
        with self._news:
            for left in reversed(range(ATTEMPTS)):
                try:
                    self._heal()
                    return {name: np.asarray(self._state[name].get()) for name in self._first}
                except AccelError as error:
                    if not left or not is_fault(error):
                        raise
        raise AssertionError

    # A worker, in its thread.

    def _work(self, number: int, until: int) -> None:
        try:
            while (pulled := self._pull(number, until)) is not None:
                self._push(number, pulled)
        except BaseException as error:  # noqa: BLE001 - `run` raises it
            self._fail(error)
        finally:
            with self._news:
                self._at.pop(number, None)
                self._news.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self._news:
            self._failed = self._failed or error
            self._news.notify_all()

    def _pull(self, number: int, until: int) -> Pulled | None:
        """Return the parameters as they are now, and the next batch; None when all are taken."""
        with self._news:
            if self._failed is not None or len(self.pushes) + len(self._at) >= until:
                return None
            taken = {push.batch for push in self.pushes} | {one.batch for one in self._at.values()}
            batch = next(one for one in itertools.count() if one not in taken)
            state = {name: self._state[name] for name in self._first}
            self._at[number] = Pulled(batch, len(self.pushes), state, self._history)
            return self._at[number]

    def _push(self, number: int, pulled: Pulled) -> None:
        """Compute a gradient, and have it applied in its turn; begin again after a fault.

        Raises:
            AccelError: it failed, and not by a fault; or by one again and again.
        """
        device = self.workers[number]
        for left in reversed(range(ATTEMPTS)):
            hear = Hearing([device, self.server])
            try:
                computed = self._computed(number, pulled, hear)
                with self._news:
                    self._news.wait_for(lambda: self._may_push(number))
                    if self._failed is None and pulled.history == self._history:
                        self._apply(number, pulled, computed, hear)
                        self._keep()
                    self._end(number)
            except AccelError as error:
                hear()
                if not left or not is_fault(error):
                    raise
                self.faults.append(error.copy())
                device.ping().result(_BACK_S)
                with self._news:
                    self._heal()
                    if pulled.history != self._history:  # of a future that was given up
                        self._end(number)
                        return
            else:
                return

    def _may_push(self, number: int) -> bool:
        others = [
            one.version
            for at, one in self._at.items()
            if at != number and one.history == self._history
        ]
        return self._failed is not None or may_push(len(self.pushes), others, self.staleness)

    def _end(self, number: int) -> None:
        """Have a worker be at nothing; who calls holds the lock."""
        self._at.pop(number, None)
        self._news.notify_all()

    def _computed(self, number: int, pulled: Pulled, hear: Hearing) -> Computed:
        """Compute a gradient of what was pulled, and wait for it.

        Raises:
            InvalidArgument: `loss` returns no variable, or one that no parameter changes.
        """
        device = self.workers[number]
        p = {name: Variable(_on(device, ref)) for name, ref in pulled.state.items()}
        batch = [
            device.put(one) if isinstance(one, np.ndarray) else one
            for one in self.batches(pulled.batch)
        ]
        loss = self.loss(p, *batch)
        require_loss(loss)
        found = dict(zip(p, gradients(loss, list(p.values())), strict=True))
        before = self._left[number]
        parts: dict[str, Sequence[AccelRef]] = {}
        left: Buffers = {}
        for name, gradient in found.items():
            if self.compression is None:
                parts[name] = (gradient,)
                continue
            whole = gradient
            if name in before and before[name].is_valid:
                whole = gradient + before[name]
            parts[name] = self.compression.pack(whole)
            left[name] = whole - self.compression.unpack(parts[name], whole)
        hear()
        for ref in (loss.value, *itertools.chain(*parts.values()), *left.values()):
            ref.result()
        return Computed(loss.get().item(), parts, left)

    # The server; who calls holds the lock.

    def _apply(self, number: int, pulled: Pulled, computed: Computed, hear: Hearing) -> None:
        """Take a step of the optimizer, and wait for it: a push is whole or was not."""
        version = len(self.pushes)
        found: Buffers = {}
        for name, parts in computed.parts.items():
            here = [_on(self.server, part) for part in parts]
            whole = self._state[name]
            found[name] = self.compression.unpack(here, whole) if self.compression else here[0]
        made, slots = self.optimizer.step(
            version + 1,
            {name: self._state[name] for name in self._first},
            found,
            self._state,
            rate=self.optimizer.rate_at(version),
        )
        hear()
        for ref in (*made.values(), *slots.values()):
            ref.result()
        # From here on the push is whole.
        self._state = made | slots
        self._left[number] = computed.left
        self.sent_bytes += sum(part.nbytes for parts in computed.parts.values() for part in parts)
        self.pushes.append(Push(number, pulled.batch, pulled.version, version, computed.loss))

    def _keep(self) -> None:
        """Take a snapshot when it is time; a fault costs the snapshot, and not the push before."""
        if len(self.pushes) % self.every:
            return
        try:
            self._take_snapshot()
        except AccelError as error:
            if not is_fault(error):
                raise
            self.faults.append(error.copy())

    def _take_snapshot(self) -> None:
        """Keep what there is now, for a server that rebuilds nothing."""
        arrays = {name: np.asarray(ref.get()) for name, ref in self._state.items()}
        self._snapshot = len(self.pushes), arrays
        with suppress(InvalidArgument, ArenaFull):  # it rebuilds nothing, or has no room
            for ref in self._state.values():
                self.server.checkpoint(ref).result()

    def _heal(self) -> None:
        """Have the parameters again, as they were, or as they were at the last snapshot."""
        self.server.ping().result(_BACK_S)
        if all(ref.is_valid for ref in self._state.values()):
            return
        if self._snapshot is None:
            pushes, self._state = 0, self._begun()
        else:
            pushes, arrays = self._snapshot
            self._state = {name: self.server.put(x) for name, x in arrays.items()}
        del self.pushes[pushes:]
        self._history += 1
        self._news.notify_all()

    def _begun(self) -> Buffers:
        """Return what training begins with."""
        parameters = {name: self.server.put(x) for name, x in self._first.items()}
        return parameters | self.optimizer.begin(parameters)

    def __repr__(self) -> str:
        where = ", ".join(device.name for device in self.workers)
        count = f"{len(self.pushes)} pushes to {self.server.name}"
        return f"AsyncParameterServer({count}, from {where}, staleness {self.staleness})"


def _on(device: Device, ref: AccelRef) -> AccelRef:
    """Return it on a device."""
    return ref if ref.device is device else device.put(ref)
