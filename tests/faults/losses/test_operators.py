"""Operators wait for nothing, stay on one device, and are made again after a loss."""

import operator
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from accel_lab import AccelRef, System, array
from accel_lab.errors import ContextLost, InvalidArgument

WAIT = 30.0
A = np.random.default_rng(0).standard_normal((8, 8))


def in_place(x: AccelRef) -> None:
    x += 1
    x @= x


SENDS: dict[str, Callable[[AccelRef], object]] = {
    "arithmetic": lambda x: [2 * x + x / 3 - x**2, x // 2, x % 2, -x, +x, abs(x), 1 / x, 2 - x],
    "comparisons": lambda x: [x == x.T, x != 1, x < 2, x <= x.T, x > 0, x <= 1],
    "bits": lambda x: [(x > 0) & (x < 1) | ~(x < 2) ^ (x > 3)],
    "products": lambda x: [x @ x, x @ x[0], x[0] @ x[0], x.astype("int32") @ x],
    "shapes": lambda x: [x.T, x.reshape(4, -1), x.ravel(), x[1:, ::2], len(x), *x, x.shape],
    "indices": lambda x: [x[[0, 1]], x[np.array([1])], array.take(x, array.argmax(x, 1), 0)],
    "dtypes": lambda x: [x.astype("float32"), x.astype("complex64")],
    "reductions": lambda x: [
        getattr(x, op)(axis)
        for op in ("sum", "max", "min", "mean", "prod", "any", "all", "argmax", "std", "var")
        for axis in (None, 0)
    ],
    "NumPy's": lambda x: [np.sin(x), np.ones(8) + x, np.sum(x), np.float32(2) * x, x - A],
    "choices": lambda x: [array.where(x > 0, x, 0.0)],
    "masks and other axes": lambda x: [x[x > 0], x[:, [0, 1]], x[[0, 1], [1, 2]], 2 * x[x > 9]],
    "joining": lambda x: [
        array.stack([x, x]),
        array.pad(x, 1, "wrap"),
        array.roll(x, 1, 0),
        array.tile(x, 2),
        array.repeat(x, 2, 1),
        array.split(x, 2),
        array.diff(x, append=0.0),
        array.diag(x[0]),
    ],
    "order": lambda x: [
        array.sort(x),
        array.argsort(x),
        array.median(x, 0),
        array.quantile(x, [0.1, 0.9]),
        array.searchsorted(array.cumsum(abs(x)), x),
        array.interp(x, x[0], x[1]),
    ],
    "counts": lambda x: [
        array.unique(x),
        array.nonzero(x > 0),
        array.histogram(x),
        array.isclose(x, x.T),
        array.clip(x, 0, 1),
        array.kron(x, x[0]),
        array.tensordot(x, x),
        array.trace(x),
    ],
    "in place": in_place,
}


@pytest.fixture
def lab(nothing_left: None) -> Iterator[System]:
    """Run two host devices that make their buffers again."""
    with System("host", devices=2, recover="replay") as system:
        yield system
        system.check()


def wait_for(path: str) -> None:
    while not Path(path).exists():
        time.sleep(0.001)


def test_no_operator_hides_a_round_trip(lab: System, tmp_path: Path) -> None:
    """While the device is busy with something else everything is sent, and nothing is fetched."""
    cpu = lab.devices[0]
    x = cpu.put(A)
    x.result(WAIT)
    latch = cpu.run(wait_for, str(tmp_path / "go"))
    for send in SENDS.values():
        send(x)
    assert not latch.done
    (tmp_path / "go").touch()
    last = (x + 1).get()
    lab.flush()
    sent = [entry.name for entry in lab.journal]
    np.testing.assert_array_equal(last, A + 1)
    assert sent.count("Download") == 1, "the one of get()"
    assert {"Unary", "Binary", "Where", "Reduce", "Matmul", "Take", "Mask", "Unique"} <= set(sent)


def test_operands_of_two_devices_are_refused(lab: System) -> None:
    x, y = (cpu.put(A) for cpu in lab.devices)
    for send in (operator.add, operator.matmul, operator.eq):
        with pytest.raises(InvalidArgument, match=r"cpu1.* is not on cpu0"):
            send(x, y)
    with pytest.raises(InvalidArgument, match="is not on cpu0"):
        array.where(x > 0, x, y)
    np.testing.assert_array_equal((x + lab.devices[0].put(y)).get(), A + A)


def test_an_operand_of_another_system_is_said_to_be_of_one(lab: System) -> None:
    x = lab.devices[0].put(A)
    with System("host") as other:
        y = other.devices[0].put(A)
        whose = (
            f"another system, on cpu0 of {other.name}, and not on this cpu0 of {lab.name}: bring"
        )
        with pytest.raises(InvalidArgument, match=whose):
            operator.add(x, y)
    with pytest.raises(InvalidArgument, match="of a system that is closed: put or compute it"):
        operator.add(x, y)


def test_a_chain_of_operators_is_made_again_after_a_loss(lab: System) -> None:
    cpu = lab.devices[0]
    x = cpu.put(A)
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    gram = scaled.T @ scaled / len(x)
    chosen = array.where(gram > 0.5, gram, -1)[[0, -1]]
    best = gram.argmax(axis=1)
    before = [ref.get() for ref in (scaled, gram, chosen, best)]
    assert gram.durability == "replayable"
    with pytest.raises(ContextLost):
        lab.inject("kill", cpu).result(WAIT)
    assert cpu.generation == 2
    for ref, was in zip((scaled, gram, chosen, best), before, strict=True):
        assert ref.get().tobytes() == was.tobytes()
    np.testing.assert_array_equal((gram + 1).get(), before[1] + 1)


def test_a_session_of_operators_replays_bit_for_bit(lab: System) -> None:
    with System("host", journal=None) as other:
        x = lab.devices[0].put(A)
        kept = array.power(abs(x), 0.5).sum(axis=1) + (1 + 2j)
        kept.result(WAIT)
        lab.flush()
        report = lab.journal.replay(other)
    assert report.ok, report
