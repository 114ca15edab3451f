"""The steps of a ring as views draw them: they do what they are for, and the host goes by them."""

from typing import Any

import numpy as np
import pytest

from accel_lab.backends.host.collective.communicator import Incoming, Outgoing
from accel_lab.backends.host.collective.library import HostCommunicator
from accel_lab.libraries.collective.ring import steps

SIZES = range(2, 9)


def after(call: str, size: int, *, alone: bool = False) -> list[list[frozenset[int]]]:
    """Return whose contributions each rank has of each part, by rank, once all steps are done.

    Parameters:
        alone: whether a rank begins with its own part alone, as in an all-gather.
    """
    held = [
        [frozenset({rank}) if not alone or rank == one else frozenset() for one in range(size)]
        for rank in range(size)
    ]
    for phase, parts in steps(call, size):
        sent = [held[rank][part] for rank, part in enumerate(parts)]
        for rank, part in enumerate(parts):
            to = (rank + 1) % size
            held[to][part] = held[to][part] | sent[rank] if phase == "folds" else sent[rank]
    return held


@pytest.mark.parametrize("size", SIZES)
def test_each_rank_has_all_of_everything_after_an_all_reduce(size: int) -> None:
    assert len(steps("all_reduce", size)) == 2 * (size - 1)
    assert after("all_reduce", size) == [[frozenset(range(size))] * size] * size


@pytest.mark.parametrize("size", SIZES)
def test_each_rank_has_its_own_part_of_all_after_a_reduce_scatter(size: int) -> None:
    held = after("reduce_scatter", size)
    assert all(held[rank][rank] == frozenset(range(size)) for rank in range(size))


@pytest.mark.parametrize("size", SIZES)
def test_each_rank_has_the_part_of_each_after_an_all_gather(size: int) -> None:
    assert after("all_gather", size, alone=True) == [[frozenset({r}) for r in range(size)]] * size


def test_what_goes_another_way_has_no_steps() -> None:
    assert steps("broadcast", 4) == steps("all_to_all", 4) == []
    assert steps("all_reduce", 1) == []


class Told(HostCommunicator):
    """A rank that notes what it sends to whom, and folds nothing."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.sent: list[tuple[int, Any]] = []

    def exchange(self, going: Any, coming: Any) -> None:
        """Note it."""
        assert all(isinstance(one, Incoming) for one in coming)
        for one in going:
            assert isinstance(one, Outgoing)
            self.sent.append((one.peer, one._array))


@pytest.mark.parametrize("call", ["all_reduce", "reduce_scatter", "all_gather"])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_the_host_sends_these_parts(call: str, size: int) -> None:
    elements = 16384 * size  # of float64: too large for a tree
    for rank in range(size):
        one = Told(rank, size)
        x, out = np.zeros(elements), np.zeros(elements)
        if call == "all_reduce":
            one.all_reduce(x, "sum", None, out)
        elif call == "reduce_scatter":
            one.reduce_scatter(x, "sum", None, out[: elements // size])
        else:
            one.all_gather(x[: elements // size], out)
        bases = [array.base if array.base is not None else array for _, array in one.sent]
        starts = [
            (array.__array_interface__["data"][0] - base.__array_interface__["data"][0])
            for (_, array), base in zip(one.sent, bases, strict=True)
        ]
        parts = [start // (16384 * 8) for start in starts]
        assert {peer for peer, _ in one.sent} == {(rank + 1) % size}
        assert parts == [step.parts[rank] for step in steps(call, size)]
