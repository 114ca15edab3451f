"""One scene of the campaign: set it, let the fault strike, and see what became of everybody."""

import gc
import random
import signal
import time
from collections import Counter
from contextlib import ExitStack
from typing import Any

import numpy as np

from accel_lab import AccelRef, Device, System, array
from accel_lab.actor.reply import Reply
from accel_lab.errors import (
    AccelError,
    Cancelled,
    ContextLost,
    DependencyFailed,
    JournalUnavailable,
    StaleRef,
)
from tests.faults.campaign import gate
from tests.faults.campaign import outside_faults as faults
from tests.faults.campaign.gate import GO, Door, Held
from tests.faults.campaign.messages import LARGE, SMALL, Senders, gated
from tests.faults.campaign.outside_faults import SIGNALS
from tests.faults.campaign.plan import INSIDE, ORDERED, Coverage, Message, Scene
from tests.faults.campaign.store import Fickle
from tests.faults.campaign.twin import Sent, Twin, same
from tests.faults.campaign.verdict import REASONS, is_lost_with_journal, may, moves

WAIT_S = 30.0


class Bench:
    """What all scenes share.

    Parameters:
        store: of the system's journal.
        rebuilds: whether the system makes buffers again after a loss.
    """

    def __init__(self, lab: System, store: Fickle, *, rebuilds: bool = False) -> None:
        self.lab = lab
        self.store = store
        self.rebuilds = rebuilds
        self.door = Door()
        self.senders = Senders(lab)
        self.twins = [Twin(device) for device in lab.devices]
        self.coverage = Coverage()
        self.outcomes: Counter[str] = Counter()
        self.steps = 0
        self.gates = 0

    def gate(self, device: Device) -> str:
        """Return a new gate's name."""
        self.gates += 1
        return f"{device.name} {self.gates}"

    def close(self) -> None:
        """Let everybody go."""
        self.door.close()


class Stage:
    """One scene on one device.

    Attributes:
        deadline_s: what a hang may take before its context is replaced.
    """

    deadline_s = 0.15

    def __init__(self, bench: Bench, twin: Twin, scene: Scene) -> None:
        self.bench = bench
        self.twin = twin
        self.device = twin.device
        self.scene = scene
        self.dice = random.Random(scene.messages[0].seed)
        self.sent: list[Sent] = []
        self.refused: list[tuple[int, int, AccelError]] = []
        self.others: list[Reply[Any]] = []
        self.held: Held | None = None
        self.after = ExitStack()
        self.generation = 0
        self.closing = False
        self.late = ""
        self.restarts = self.failing_starts = 0
        self.order = scene.fault
        if scene.fault == "corrupt up":
            self.order = f"{gate.CORRUPT}{scene.variant}"

    @property
    def haste(self) -> int:
        """How little time may pass between the phase and the fault."""
        return 2 if self.scene.phase == "restarting" else int(self.scene.fault == "hang")

    # Setting the scene.

    def prepare(self) -> None:
        """Bring the device into the phase, with the messages in it."""
        self.make_ready()
        self.enter()

    def make_ready(self) -> None:
        """Wait for a context that has some buffers."""
        assert faults.until(lambda: self.device.state == "running", WAIT_S), self.device
        self._furnish()
        self.generation = self.device.generation

    def enter(self) -> None:
        """Bring a device that is ready into the phase."""
        getattr(self, f"_{self.scene.phase}")()

    def _furnish(self) -> None:
        """See that there are buffers to work with."""
        twin, dice = self.twin, self.dice
        shapes = [cell.ref.shape for cell in twin.usable() if cell.root is cell]
        small, large = shapes.count(SMALL), shapes.count(LARGE)
        for shape, missing in ((SMALL, 3 - small), (LARGE, 2 - large)):
            for _ in range(missing):
                value = np.random.default_rng(dice.randrange(1 << 30)).standard_normal(shape)
                self._enter(lambda v=value: self.bench.senders.put(twin, v))

    def _queued(self) -> None:
        latch = self._hold()
        self._inject()
        self._send_all()
        self.held = self.bench.door.wait(latch)

    def _enqueued(self) -> None:
        """Executed, and not answered: their streams do not get to the end."""
        self.bench.senders.warm(self.twin)
        first = self._hold(stall=True)
        self.twin.decided = self.twin.usable()
        self._send_all()
        self.twin.decided = []
        self._inject(only=("library", "out of memory"))
        last = self._hold(timeout_s=600.0)
        self.bench.door.wait(first).tell()
        self.held = self.bench.door.wait(last)

    def _running(self) -> None:
        kinds = gated(self.scene.messages[0])
        name = self.bench.gate(self.device)
        self.device.run(gate.arm, self.bench.door.address, name, kinds).result(WAIT_S)
        if self.scene.fault == "hang":
            self.after.enter_context(faults.short_deadlines(self.device, self.deadline_s))
        self._send_all(self.scene.messages[:1])
        self._flush()
        self.held = self.bench.door.wait(name)
        self.after.close()
        self._send_all(self.scene.messages[1:])

    def _completing(self) -> None:
        """Answered, and not read: the notebook's reader is kept away from the wire."""
        self.bench.senders.warm(self.twin)
        first = self.bench.door.wait(self._hold())
        link = self.device._requests.connection.current_link
        assert link is not None
        link._reading.acquire()
        self.after.callback(link._release)
        self._send_all()
        self._inject(only=("library", "out of memory"))
        deadline_s = self.deadline_s if self.scene.fault == "hang" else None
        last = self._hold(timeout_s=deadline_s)
        first.tell()
        self.held = self.bench.door.wait(last)

    def _uploading(self) -> None:
        self._transfer(["Upload"], lambda: self.bench.senders.upload(self.twin, self.dice))

    def _downloading(self) -> None:
        self._transfer(["Download"], lambda: self.bench.senders.download(self.twin, self.dice))

    def _transfer(self, kinds: list[str], begin: Any) -> None:
        name = self.bench.gate(self.device)
        self.device.run(gate.arm, self.bench.door.address, name, kinds).result(WAIT_S)
        if self.scene.fault == "hang":
            self.after.enter_context(faults.short_deadlines(self.device, self.deadline_s))
        self._enter(begin)
        self._flush()
        self.held = self.bench.door.wait(name)
        self.after.close()
        self._send_all()

    def _restarting(self) -> None:
        self._lose_first()
        self._furnish()
        if self.scene.fault in ORDERED:
            self.late = self._hold()
        self._inject()
        self._send_all()

    def _lose_first(self) -> None:
        """Have the context lost before the fault strikes."""
        # What was left of the scene before may just have ended this context, too.
        assert faults.until(lambda: self.device.state == "running", WAIT_S), self.device
        self.generation = self.device.generation
        faults.send_signal(self.device, signal.SIGKILL)
        assert faults.until(lambda: self.device.generation > self.generation), self.device

    def _hold(self, timeout_s: float | None = None, *, stall: bool = False) -> str:
        name = self.bench.gate(self.device)
        address = self.bench.door.address
        reply = self.device.run(gate.hold, address, name, stall=stall, timeout_s=timeout_s)
        self.others.append(reply)
        self._flush()
        return name

    def _inject(self, only: tuple[str, ...] = INSIDE) -> None:
        """Send the fault as a message of its own, where there is one."""
        fault = self.scene.fault
        if fault not in only or fault in ORDERED:
            return
        limit = self.deadline_s if fault == "hang" else 600.0
        self.others.append(self.bench.lab.inject(fault, self.device, timeout_s=limit))  # type: ignore[arg-type]
        self.order = GO

    def _send_all(self, messages: tuple[Message, ...] | None = None) -> None:
        for message in self.scene.messages if messages is None else messages:
            self._enter(lambda m=message: self.bench.senders.send(self.twin, m))

    def _enter(self, send: Any) -> None:
        """Send one message, or note why it was refused."""
        self.bench.steps += 1
        before = self.device.generation
        try:
            sent = send()
        except AccelError as error:
            refusal = error.with_traceback(None)  # it would keep this frame's buffers
            self.refused.append((before, self.device.generation, refusal))
            return
        sent.before, sent.after = before, self.device.generation
        self.sent.append(sent)

    def _flush(self) -> None:
        self.device._requests.flush()

    # The fault.

    def strike(self) -> None:
        """Cause the fault, and take note of whom it met."""
        self.meet()
        self.cause()
        self.release()

    def meet(self) -> None:
        """Take note of what is in the phase."""
        scene = self.scene
        met = [s.family for s in self.sent if s.reply is None or not s.reply.done]
        if scene.phase == "running":
            met = [scene.family]
        elif scene.phase == "restarting" and self.device.state == "running":
            met = []
        self.bench.coverage.add(scene.fault, scene.phase, met)

    def cause(self) -> None:
        """Cause the fault."""
        self.bench.steps += 1
        if self.scene.fault in INSIDE:
            self._strike_inside()
        else:
            self._strike_outside()

    def release(self) -> None:
        """Let go on what can."""
        if self.held is not None:
            self.held.tell()
        self.held = None
        self.after.close()

    def _strike_inside(self) -> None:
        scene, lab = self.scene, self.bench.lab
        if self.late:
            self.held = self.bench.door.wait(self.late)
        if scene.fault == "wedge":
            self.others.append(self.device.ping())  # what it does not read
            self._flush()
        late = scene.variant % 2 == 1
        if scene.fault == gate.LOST:
            ids = faults.lose_segments(lab, self.device, late=late)
            self.order = " ".join([self.order, *map(str, ids)])
        if self.held is not None:
            self.held.tell(self.order)
            # Nothing is given back before the loss was noticed; a system that closes gives nothing.
            if scene.fault == gate.LOST and (late or not self.closing):
                self.bench.door.wait(self.held.name).tell()
                if late:
                    faults.give_segments(lab, self.device)
        self.held = None
        if scene.fault == "hang" and (scene.phase == "enqueued" or scene.family == "run"):
            self.device.replace()  # what has no deadline

    def _strike_outside(self) -> None:  # noqa: C901 - one for each fault
        device, variant = self.device, self.scene.variant
        match self.scene.fault:
            case "signal":
                faults.send_signal(device, SIGNALS[variant])
            case "freeze":
                faults.freeze(device)
            case "failing start":
                self.failing_starts = faults.fail_starts(device, variant)
                self.restarts = device._supervisor.restarts
                faults.send_signal(device, signal.SIGKILL)
            case "corrupt down":
                faults.corrupt_down(device, variant)
            case "replace":
                device.replace()
            case "cancel":
                self._cancel()
            case "interrupt":
                replies = [s.reply for s in self.sent if s.reply is not None]
                faults.interrupt(device, [*replies, *self.others], variant)
            case "drop":
                self._drop()
            case "arena full":
                faults.fill_arena(self.bench.lab, device, self.dice)
            case "journal away":
                self.bench.store.away += 1
                if is_lost_with_journal(self.scene):
                    faults.send_signal(device, signal.SIGKILL)

    def _cancel(self) -> None:
        for sent in self.sent:
            if sent.reply is not None and self.dice.random() < 0.7:
                sent.reply.cancel()

    def _drop(self) -> None:
        for sent in self.sent:
            sent.via = ()
            if isinstance(sent.reply, AccelRef):
                sent.reply = None
            if sent.makes is not None:
                sent.makes.handle = sent.makes.root.handle = None
        self.twin.drop()
        self.bench.senders.drop(self.twin)

    # What became of it.

    def finish(self) -> None:
        """Wait for every answer, and compare each with what may be."""
        for sent in self.sent:
            self._outcome(sent)
        for reply in self.others:
            self._answer(reply)
        self._check_generation()
        self._check_reason()
        for before, after, error in self.refused:
            assert isinstance(error, StaleRef | ContextLost | DependencyFailed), error
            assert after > before or after > self.generation, error
        for sent in self.sent:
            self._judge(sent)
        self._mend()
        if self.bench.rebuilds:
            assert faults.until(lambda: self.device.state == "running"), self.device
        self.twin.sort()
        self._check_old()
        if self.bench.rebuilds or self.device.generation == self.generation:
            self._check_contents()
        self.held = None

    def _mend(self) -> None:
        """Bring back what is not gone for good, and see that it is whole."""
        lab, store = self.bench.lab, self.bench.store
        if self.scene.fault == gate.LOST:
            faults.give_segments(lab, self.device)

            def mapped() -> Any:
                ids = [segment.id for segment in lab._arena.segments]
                return self.device.run(gate.segments_are_there, ids).result(WAIT_S)

            assert faults.until(mapped), self.device
        elif self.scene.fault == "failing start":
            assert faults.until(lambda: not faults.starts_fail(self.device)), self.device
            least, supervisor = self.restarts + self.failing_starts, self.device._supervisor
            assert faults.until(lambda: supervisor.restarts >= least), self.scene
        elif self.scene.fault == "journal away":
            self.device.ping().result(WAIT_S)
            try:
                lab.flush()
            except JournalUnavailable:
                self.bench.outcomes["JournalUnavailable"] += 1
            else:
                raise AssertionError(f"{store} was away and took what was sent")
            store.away -= 1
            if not store.away:
                lab.flush()
                assert store.gaps == 0, store

    def _outcome(self, sent: Sent) -> None:
        for reply in sent.via:
            self._answer(reply)
        if sent.reply is not None:
            sent.outcome = self._answer(sent.reply)
            sent.error = sent.reply.error

    def _answer(self, reply: Reply[Any]) -> Any:
        """Wait for an answer; it has to come, and be a value or an AccelError."""
        try:
            value = reply.result(WAIT_S)
        except AccelError as error:
            self.bench.outcomes[type(error).__name__] += 1
            return None
        self.bench.outcomes["success"] += 1
        return value

    def _check_generation(self) -> None:
        """The generation has moved as often as a context was lost, and no more."""
        least, most = self._moves()
        # All answers may be here before a fault is noticed that concerns none of them.
        faults.until(lambda: self.device.generation >= self.generation + least, WAIT_S)
        moved = self.device.generation - self.generation
        assert least <= moved <= most, (moved, self.scene)

    def _moves(self) -> tuple[int, int]:
        """Return how far the generation moves at least and at most."""
        return moves(self.scene)

    def _check_reason(self) -> None:
        """What nobody but a watch can notice is lost for the reason that it gives."""
        why = REASONS.get(self.scene.fault)
        if why is not None and self.scene.phase != "restarting":
            supervisor = self.device._supervisor  # the generation moves first
            assert faults.until(lambda: why in str(supervisor.cause)), (
                supervisor.cause,
                self.scene,
            )

    def _judge(self, sent: Sent) -> None:
        """Apply a success to the twin; a failure must have a reason."""
        if sent.error is not None:
            assert self._may(sent, sent.error), (sent, repr(sent.error), self.scene)
            if isinstance(sent.error, Cancelled | ContextLost):
                self.twin.doubt(sent)
            return
        if sent.reply is None and self.device.generation != sent.before:
            self.twin.doubt(sent)  # nobody knows
            return
        self.twin.apply(sent)

    def _may(self, sent: Sent, error: AccelError) -> bool:
        """Whether a request may have failed so."""
        return may(
            sent,
            error,
            self.scene.fault,
            before=self.sent[: self.sent.index(sent)],
            now=self.device.generation,
            rebuilds=self.bench.rebuilds,
            closing=self.closing,
        )

    def _check_old(self) -> None:
        """No buffer of a lost generation can be read, whoever claims that it can."""
        for cell in self.twin.old[-1:]:
            old = cell.ref
            try:
                array.copy(old)
            except StaleRef:
                pass
            else:
                raise AssertionError(f"{old!r} was taken")
            if self.bench.rebuilds:
                continue  # it may have been made again for what depends on it
            now = self.device.generation
            pump = self.device._requests.pump
            claim = AccelRef(pump, old.origin, old.device, old.owner, now, old.shape, old.dtype)
            try:
                found = self.device.get(claim).result(WAIT_S)
            except (StaleRef, ContextLost):
                continue
            raise AssertionError(f"{old!r} was read: {found}")

    def _check_contents(self) -> None:
        """Everything that is still there is what it should be."""
        replies = [(cell, self.device.get(cell.ref)) for cell in self.twin.cells]
        for cell, reply in replies:
            same(reply.result(WAIT_S), cell.value, cell)
        if self.scene.fault == "drop":
            self.empty_of(self.device)

    @staticmethod
    def empty_of(device: Device) -> None:
        """Find that the context has freed what has no handle any more."""
        deadline = time.monotonic() + WAIT_S
        device.ping().result(WAIT_S)  # takes along what has been freed
        while (found := device.run(gate.holdings).result(WAIT_S))[0]:
            gc.collect()
            assert time.monotonic() < deadline, (device, found)
