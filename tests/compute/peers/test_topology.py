"""Who reaches whom, how fast that was, and how it is drawn."""

import re
import threading
import time
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from accel_lab import System, array
from accel_lab.backends.host.machine.links import node_of
from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.compute.peers.link import APART, SHARED, Distance, Link, distance
from accel_lab.compute.peers.topology import P2pTopology
from accel_lab.compute.transfer.ways import Ways
from accel_lab.errors import InvalidArgument

WAIT = 60.0


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", devices=3) as lab:
        yield lab


class Stub:
    """A device, as far as links are concerned."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.generation = 1


def topology_of(reached: set[tuple[str, str]], names: str = "abcde") -> P2pTopology:
    """Return one in which these pairs reach each other, both ways."""
    far, near = Link("SYS", reachable=False), Link("NVLink", reachable=True, nvlinks=4)
    links = {
        (a, b): near if (a, b) in reached or (b, a) in reached else far
        for a, b in permutations(names, 2)
    }
    devices = cast("Any", [Stub(name) for name in names])
    return P2pTopology(devices, lambda: links, Ways(is_card=True))


def test_on_the_host_all_reach_each_other(lab: System) -> None:
    topology = lab.topology
    assert topology.islands == (("cpu0", "cpu1", "cpu2"),)
    far: Distance = topology.distance
    for a, b in permutations(topology.names, 2):
        assert topology.reachable(a, b)
        assert topology.link(a, b).kind == SHARED
        assert far(a, b) == far(b, a) > far(a, a) == 0
    with pytest.raises(InvalidArgument, match="cpu0, cpu1, cpu2"):
        topology.link("cpu0", "cpu7")


@pytest.mark.parametrize(
    ("reached", "islands"),
    [
        (set(), [("a",), ("b",), ("c",), ("d",), ("e",)]),
        ({("a", "c"), ("c", "e"), ("b", "d")}, [("a", "c", "e"), ("b", "d")]),
        ({("d", "e"), ("a", "e")}, [("a", "d", "e"), ("b",), ("c",)]),
    ],
)
def test_islands_share_the_devices_out(
    reached: set[tuple[str, str]], islands: list[tuple[str, ...]]
) -> None:
    topology = topology_of(reached)
    assert list(topology.islands) == islands
    assert sorted(sum(topology.islands, ())) == sorted(topology.names)
    for island in topology.islands:
        for a, b in permutations(topology.names, 2):
            assert topology.reachable(a, b) == topology.reachable(b, a)
            if topology.reachable(a, b):
                assert (a in island) == (b in island)


def test_the_backend_is_asked_again_for_a_new_generation() -> None:
    device, other = Stub("a"), Stub("b")
    asked = []

    def links() -> dict[tuple[str, str], Link]:
        asked.append(device.generation)
        return dict.fromkeys([("a", "b"), ("b", "a")], Link("PIX", reachable=True))

    topology = P2pTopology(cast("Any", [device, other]), links, Ways(is_card=True))
    assert topology.links == topology.links
    device.generation = 2
    assert topology.reachable("a", "b")
    assert asked == [1, 2]


def test_a_look_waits_for_no_driver_and_has_the_links_of_a_new_context_later() -> None:
    device, other = Stub("a"), Stub("b")
    answers, asked = threading.Event(), []

    def links() -> dict[tuple[str, str], Link]:
        asked.append(device.generation)
        answers.wait(WAIT)
        if device.generation == 3:
            raise OSError("the driver is gone")
        link = Link(f"PIX{device.generation}", reachable=device.generation == 1)
        return dict.fromkeys([("a", "b"), ("b", "a")], link)

    topology = P2pTopology(cast("Any", [device, other]), links, Ways(is_card=True))

    def seen(count: int, kind: str) -> None:
        until = time.monotonic() + WAIT
        while not (found := topology.look().links) or found[0].link != kind:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert len(asked) == count

    looks = [topology.look() for _ in range(3)]
    assert {(one.devices, one.islands, one.links) for one in looks} == {(("a", "b"), (), ())}
    answers.set()
    seen(1, "PIX1")
    assert topology.look().islands == (("a", "b"),)
    device.generation = 2
    seen(2, "PIX2, not reachable")
    assert topology.look().islands == (("a",), ("b",))
    device.generation = 3
    for _ in range(3):
        assert topology.look().links[0].link == "PIX2, not reachable"
    with pytest.raises(OSError, match="gone"):
        topology.reachable("a", "b")


def test_more_links_are_nearer_and_what_is_not_reached_is_far() -> None:
    kinds = [
        Link("NVLink", reachable=True, nvlinks=18),
        Link("NVLink", reachable=True, nvlinks=4),
        *[Link(kind, reachable=True) for kind in ("PIX", "PXB", "PHB", "NODE", "SYS", "")],
        Link("PIX", reachable=False),
    ]
    far = [distance(link) for link in kinds]
    assert far == sorted(far)
    assert len(set(far)) == len(far)
    assert far[-1] > APART


def test_the_numa_node_is_told_where_all_processors_are_of_one(tmp_path: Path) -> None:
    for node, cpus in enumerate(("0-3,8\n", "4-7\n")):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "cpulist").write_text(cpus)
    assert node_of({1, 8}, tmp_path) == 0
    assert node_of({5}, tmp_path) == 1
    assert node_of({3, 4}, tmp_path) is None
    assert node_of({0}, tmp_path / "none") is None


@pytest.mark.parametrize("dtype", sorted(NAMES))
def test_a_copy_is_equal_in_every_dtype(lab: System, dtype: str) -> None:
    values = np.arange(24).reshape(4, 6).astype(numpy_dtype(dtype))
    x = lab.devices[0].put(values)
    whole, part = lab.copy(x, to=lab.devices[1]), lab.copy(x[1:, ::-2].T, to="cpu2")
    empty = lab.copy(x[:0], to=2)
    assert [one.device.name for one in (whole, part, empty)] == ["cpu1", "cpu2", "cpu2"]
    for copied, expected in ((whole, values), (part, values[1:, ::-2].T), (empty, values[:0])):
        got = copied.get(timeout_s=WAIT)
        assert got.dtype == expected.dtype
        assert got.shape == expected.shape
        assert got.tobytes() == expected.tobytes()


def test_copies_are_counted_by_the_way_they_went() -> None:
    with System("host", devices=2) as lab:
        first, second = lab.devices
        x = first.put(np.zeros(1000))
        copies = [lab.copy(x, to=second), second.put(x), x.to_device(second)]
        assert all((one.get(timeout_s=WAIT) == 0).all() for one in copies)
        assert lab.topology.copies == [("cpu0", "cpu1", SHARED, 3, 24_000)]
        with pytest.raises(InvalidArgument, match="takes an AccelRef, not a ndarray"):
            lab.copy(np.zeros(3), to=second)  # type: ignore[arg-type]


def test_a_figure_is_of_two_contexts_and_is_refreshed_alone() -> None:
    with System("host", devices=3, max_restarts=10) as lab:
        topology = lab.topology
        assert topology.bandwidth(0, 1) is None
        assert topology.measure(1 << 16, rounds=1) is topology
        figures = {pair: topology.bandwidth(*pair) for pair in permutations(range(3), 2)}
        for figure in figures.values():
            assert figure is not None
            assert figure.gb_per_s > 0
            assert (figure.nbytes, figure.way, figure.stale) == (1 << 16, SHARED, False)
        before = sum(one.copies for one in topology.copies)
        lab.devices[1].replace()
        lab.ready()
        stale = {pair for pair in figures if (found := topology.bandwidth(*pair)) and found.stale}
        assert stale == {(0, 1), (1, 0), (1, 2), (2, 1)}
        assert "(stale)" in repr(topology)
        topology.measure(1 << 16, rounds=1, anew=False)
        assert sum(one.copies for one in topology.copies) == before + 2 * len(stale)
        assert topology.bandwidth(0, 2) == figures[0, 2]
        assert "stale" not in repr(topology)
        with pytest.raises(InvalidArgument):
            topology.measure(0)


def test_it_is_drawn_with_every_number_as_text(lab: System) -> None:
    lab.topology.measure(1 << 12, rounds=1)
    drawn = lab.topology._repr_mimebundle_()
    html, text = drawn["text/html"], drawn["text/plain"]
    assert text == repr(lab.topology)
    assert html.count('scope="col"') == 4
    assert html.count('scope="row"') == 3
    shades = [float(one) for one in re.findall(r"rgba\(56, 132, 244, ([\d.]+)\)", html)]
    assert len(shades) == 6
    assert max(shades) == 0.45
    assert "color:" not in html.replace("background-color:", ""), "the page's own is read on it"
    for a, b in permutations(lab.topology.names, 2):
        figure = lab.topology.bandwidth(a, b)
        assert figure is not None
        assert f'title="{a} to {b}: shared memory, {figure.gb_per_s:.3g} GB/s"' in html
        assert f"{figure.gb_per_s:.3g} GB/s" in text
    assert "1 island: cpu0, cpu1, cpu2" in html
    assert text.count("\n") >= len(lab.devices)


def test_a_single_device_has_no_peers() -> None:
    topology = topology_of(set(), "a")
    assert topology.islands == (("a",),)
    assert "not measured" not in repr(topology)


def test_measuring_keeps_no_contents(lab: System) -> None:
    first: Device = lab.devices[0]
    lab.flush()
    before = lab._contents.used_bytes
    lab.topology.measure(1 << 18, rounds=1)
    lab.flush()
    assert lab._contents.used_bytes - before < 1 << 18
    assert (array.full(first, (3,), 1.0).get(timeout_s=WAIT) == 1).all()
