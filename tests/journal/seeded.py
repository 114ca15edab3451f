"""A seeded program of thousands of messages: sent to a device, and worked out by NumPy alone.

A program has twelve slots, half of them 8 x 8 and half 48 x 48, of float64. Each action sends one
message, or the two of an upload, and what it makes takes the place of another buffer, which is
freed then.
"""

import random
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accel_lab import AccelRef, Device, System, array, blas, rng
from accel_lab.compute.lineage.content_store import key_of
from accel_lab.compute.message.builtin import INLINE_BYTES
from accel_lab.journal.entries.entry import Entry
from tests.contract import philox

Array = npt.NDArray[np.float64]
SMALL, LARGE = (8, 8), (48, 48)
SLOTS = 12
SEEDS = 8


class Action(NamedTuple):
    """One thing that a program does.

    Attributes:
        slots: of the operands.
        made: the slot that the result takes, None when there is none.
        number: what the values of the result depend on.
    """

    way: str
    slots: tuple[int, ...]
    made: int | None
    number: int


class Sent(NamedTuple):
    """A message as the record should have it: the fields that are named here at least."""

    name: str
    fields: dict[str, Any]


def shape_of(slot: int | None) -> tuple[int, int]:
    """Return the shape of the buffers in a slot."""
    assert slot is not None
    return SMALL if slot < SLOTS // 2 else LARGE


def program(seed: int) -> Iterator[Action]:
    """Yield actions for ever; the same for the same seed."""
    dice = random.Random(seed)
    memory = list(range(SLOTS))  # which memory is in a slot: a view has that of another

    def put(slot: int) -> Action:
        return Action("put", (), slot, dice.randrange(1 << 30))

    yield from map(put, range(SLOTS))
    shares = [way.share for way in WAYS.values()]
    for fresh in range(SLOTS, 1 << 62):
        (way,) = dice.choices(list(WAYS), shares)
        large = dice.random() < 0.3 and way != "uniform"
        x, y, made = (dice.randrange(SLOTS // 2) + large * SLOTS // 2 for _ in range(3))
        if way == "write" and memory[x] == memory[y]:
            way = "shrink"
        if way == "put":
            yield put(made)
        else:
            arity, makes = WAYS[way].operands, WAYS[way].makes
            number = dice.randrange(SEEDS)
            yield Action(way, (x, y)[:arity], made if makes else None, number)
        if WAYS[way].makes:
            memory[made] = memory[x] if way == "transpose" else fresh


def drawn(action: Action) -> Array:
    """Return what an action puts."""
    return np.random.default_rng(action.number).standard_normal(shape_of(action.made))


@cache
def uniform(seed: int) -> Array:
    """Return what 8 x 8 uniform numbers of a seed are by definition."""
    words = philox.words(seed, 0, 0, 128)
    flat = [philox.unit64(words[2 * i], words[2 * i + 1]) for i in range(64)]
    return np.array(flat).reshape(SMALL)


class Way(NamedTuple):
    """One way to act.

    Attributes:
        share: how often it is taken, relative to others.
        operands: how many it has.
        makes: whether its result takes a slot.
        send: does it, given the device and the buffers.
        compute: does it to arrays; what it writes it returns, too.
        messages: returns what it sends, given the numbers of the actions that made its operands.
    """

    share: int
    operands: int
    makes: bool
    send: Callable[[Device, Action, list[AccelRef]], Any]
    compute: Callable[[Action, list[Array]], Array]
    messages: Callable[[Action, list[int]], list[Sent]]


def _shrink(array: Array) -> Array:
    return np.multiply(array, -0.75, out=array)


def _write(source: Array, target: Array) -> Array:
    target[...] = source
    return target


def _puts(action: Action, _: list[int]) -> list[Sent]:
    data = drawn(action).tobytes()
    if len(data) <= INLINE_BYTES:
        return [Sent("Put", {"data": data})]
    upload = {"offset": 0, "nbytes": len(data), "content": key_of(data)}
    return [Sent("Allocate", {"shape": list(LARGE)}), Sent("Upload", upload)]


WAYS = {
    "put": Way(
        share=20,
        operands=0,
        makes=True,
        send=lambda device, action, _: device.put(drawn(action)),
        compute=lambda action, _: drawn(action),
        messages=_puts,
    ),
    "gemm": Way(
        share=15,
        operands=2,
        makes=True,
        send=lambda _, __, x: blas.gemm(*x, alpha=1 / 64),
        compute=lambda _, x: x[0] @ x[1] / 64,
        messages=lambda _, x: [Sent("Gemm", {"a": x[0], "b": x[1], "alpha": 1 / 64})],
    ),
    "axpy": Way(
        share=15,
        operands=2,
        makes=True,
        send=lambda _, __, x: blas.axpy(*x, alpha=-0.5),
        compute=lambda _, x: -0.5 * x[0] + x[1],
        messages=lambda _, x: [Sent("Axpy", {"x": x[0], "y": x[1], "alpha": -0.5})],
    ),
    "shrink": Way(
        share=15,
        operands=1,
        makes=False,
        send=lambda _, __, x: blas.scal(x[0], -0.75, out=x[0]),
        compute=lambda _, x: _shrink(*x),
        messages=lambda _, x: [Sent("Scal", {"x": x[0], "alpha": -0.75, "out": x[0]})],
    ),
    "write": Way(
        share=8,
        operands=2,
        makes=False,
        send=lambda _, __, x: array.copy(x[0], out=x[1]),
        compute=lambda _, x: _write(*x),
        messages=lambda _, x: [Sent("Copy", {"x": x[0], "out": x[1]})],
    ),
    "copy": Way(
        share=8,
        operands=1,
        makes=True,
        send=lambda _, __, x: array.copy(*x),
        compute=lambda _, x: x[0].copy(),
        messages=lambda _, x: [Sent("Copy", {"x": x[0], "out": None})],
    ),
    "transpose": Way(  # a view, here and there
        share=6,
        operands=1,
        makes=True,
        send=lambda _, __, x: array.transpose(*x),
        compute=lambda _, x: x[0].T,
        messages=lambda _, x: [Sent("Transpose", {"x": x[0]})],
    ),
    "full": Way(
        share=6,
        operands=0,
        makes=True,
        send=lambda device, a, _: array.full(
            device, shape_of(a.made), a.number / 8, dtype="float64"
        ),
        compute=lambda a, _: np.full(shape_of(a.made), a.number / 8),
        messages=lambda a, _: [
            Sent("Full", {"shape": list(shape_of(a.made)), "value": a.number / 8})
        ],
    ),
    "uniform": Way(
        share=6,
        operands=0,
        makes=True,
        send=lambda device, action, _: rng.uniform(device, SMALL, "float64", seed=action.number),
        compute=lambda action, _: uniform(action.number).copy(),
        messages=lambda action, _: [Sent("Uniform", {"seed": action.number})],
    ),
    "get": Way(
        share=1,
        operands=1,
        makes=False,
        send=lambda device, _, x: device.get(*x).result(),
        compute=lambda _, x: x[0],
        messages=lambda _, x: [Sent("Download", {"x": x[0]})],
    ),
}


class Sender:
    """Sends a program to a device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._refs: dict[int, AccelRef] = {}

    def send(self, action: Action) -> None:
        """Do one action; what its result takes the place of is freed."""
        operands = [self._refs[slot] for slot in action.slots]
        made = WAYS[action.way].send(self._device, action, operands)
        if action.made is not None:
            self._refs[action.made] = made


class Twin:
    """What the buffers of a program hold.

    Attributes:
        values: by slot.
        makers: the number of the action that made what is in a slot.
        done: how many actions were applied.
    """

    def __init__(self) -> None:
        self.values: list[Array] = [np.empty(0)] * SLOTS
        self.makers = [-1] * SLOTS
        self.done = 0

    def apply(self, action: Action) -> None:
        """Do one action."""
        operands = [self.values[slot] for slot in action.slots]
        made = WAYS[action.way].compute(action, operands)
        if action.made is not None:
            self.values[action.made], self.makers[action.made] = made, self.done
        self.done += 1

    def messages(self, action: Action) -> list[Sent]:
        """Return what the next action sends; a buffer is the number of its action."""
        makers = [self.makers[slot] for slot in action.slots]
        return WAYS[action.way].messages(action, makers)


class Run:
    """A program on a system with a journal, which tells what was committed.

    Attributes:
        done: how many actions have been sent.
        lab: the system, which is open until somebody closes it.

    Parameters:
        path: of the journal.
        tell: gets a line with the number of actions after each flush.
        options: of the system.
    """

    def __init__(self, path: str | Path, seed: int, tell: IO[str], **options: Any) -> None:
        self.done = 0
        self._tell = tell
        self._actions = program(seed)
        self._dice = random.Random(f"flush {seed}")
        self._next = self._dice.randrange(1, 50)
        self.lab = System("host", journal=path, **options).ready()
        self._sender = Sender(self.lab.devices[0])

    def send(self, count: int) -> None:
        """Do some actions; from time to time have them committed and say so."""
        for action in islice(self._actions, count):
            self._sender.send(action)
            self.done += 1
            if self.done == self._next:
                self._next += self._dice.randrange(50, 500)
                self.lab.flush()
                self._tell.write(f"{self.done}\n")
                self._tell.flush()


class Recorded(NamedTuple):
    """What of a program is in a record.

    Attributes:
        makers: the message that made the buffer of an action, by the action's number.
        ends: the request number of each action's last message, for those that are there whole.
    """

    makers: dict[int, Entry]
    ends: list[int]


def match(messages: list[Entry], seed: int, certain: int) -> Recorded:
    """Check that these are messages of a program in its order, and none between them left out.

    Parameters:
        certain: how many actions were committed for certain: the contents are there too.
    """
    twin = Twin()
    ends: list[int] = []
    makers: dict[int, Entry] = {}
    made: dict[int, int] = {}
    ahead = iter(messages)
    entry = next(ahead, None)
    seq, skipped = 0, 0 if entry is None else entry.seq - 1
    for action in program(seed):
        for sent in twin.messages(action):
            seq += 1
            if seq <= skipped:
                continue
            if entry is None:
                return Recorded(makers, ends)
            assert entry.seq == seq, f"{entry} stands where request {seq} should"
            if entry.result:
                made[entry.result] = twin.done
                makers[twin.done] = entry
            _require(entry, sent, made, certain=twin.done < certain)
            entry = next(ahead, None)
        twin.apply(action)
        ends.append(seq)
    raise AssertionError


def _require(entry: Entry, sent: Sent, made: dict[int, int], *, certain: bool) -> None:
    assert entry.name == sent.name, f"{entry} instead of {sent}"
    for name, value in sent.fields.items():
        if name == "content":
            assert entry.content == value or not (certain or entry.content), entry
            continue
        found = entry.fields[name]
        if name in ("x", "y", "a", "b", "out") and found is not None:
            # A buffer of which the record does not begin early enough to show how it was made
            # is known from its first use on.
            found = made.setdefault(found, value)
        assert found == value, f"{entry}: {name}"


def twins(seed: int, ends: list[int], lost: Callable[[int], bool]) -> Iterator[Twin]:
    """Yield the twin after each action of a record, with NaN for what cannot be known.

    Parameters:
        lost: whether the message of a request was not run.
    """
    twin, begin = Twin(), 0
    for action, end in zip(program(seed), ends, strict=False):
        twin.apply(action)
        if any(map(lost, range(begin + 1, end + 1))):
            changed = action.made if action.made is not None else action.slots[-1]
            if action.way != "get":
                twin.values[changed][...] = np.nan
        begin = end
        yield twin
