"""Where devices are, and where they go when their node is gone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab.compute.cluster.places import Node, Place, Places
from accel_lab.errors import BackendUnavailable, InvalidArgument


def nodes(*rooms: int) -> list[Node]:
    return [Node(f"id{at}", f"node{at}", room) for at, room in enumerate(rooms)]


def where(places: Places) -> list[tuple[str, int]]:
    found = [places.place(index) for index in places.indices]
    return [(place.node.id, place.slot) for place in found]


def test_devices_are_dealt_in_turn() -> None:
    assert where(Places(nodes(1, 2, 2), 4, 1)) == [("id0", 0), ("id1", 0), ("id2", 0), ("id1", 1)]


def test_nobody_says_how_many() -> None:
    assert where(Places(nodes(0, 3, 1), None, 1)) == [("id1", 0), ("id2", 0)]
    assert len(where(Places(nodes(0, 3, 1), None, None))) == 4


def test_too_many_are_refused_with_what_there_is() -> None:
    with pytest.raises(InvalidArgument, match=r"5 devices.*room for 3: node0 for 1, node1 for 2"):
        Places(nodes(1, 2), 5, 1)
    with pytest.raises(InvalidArgument, match="no node is there"):
        Places([], None, 1)


def test_a_device_goes_where_most_room_is_and_stays_there() -> None:
    places = Places(nodes(1, 1, 2, 4), 3, 1)
    places.gone("id2")
    assert places.of(2) is None
    assert places.place(2) == places.place(2) == places.of(2)
    assert where(places) == [("id0", 0), ("id1", 0), ("id3", 0)]


def test_without_room_it_is_refused_until_a_node_comes() -> None:
    places = Places(nodes(1, 1), 2, 1)
    places.gone("id1")
    with pytest.raises(BackendUnavailable, match="no other one has room: node0 for 1"):
        places.place(1)
    places.update([*nodes(1), Node("new", "new", 1)])
    assert places.place(1) == Place(Node("new", "new", 1), 0)
    assert where(places) == [("id0", 0), ("new", 0)]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.data())
def test_no_two_devices_share_a_place(rooms: list[int], data: st.DataObject) -> None:
    total = sum(rooms)
    if not total:
        return
    places = Places(nodes(*rooms), data.draw(st.integers(1, total)), 1)
    gone = data.draw(st.sets(st.sampled_from(range(len(rooms)))))
    for at in gone:
        places.gone(f"id{at}")
    left = sum(room for at, room in enumerate(rooms) if at not in gone)
    placed = []
    for index in places.indices:
        try:
            placed.append(places.place(index))
        except BackendUnavailable:
            continue
    assert len({(one.node.id, one.slot) for one in placed}) == len(placed)
    assert len(placed) == min(left, len(places.indices))
    assert all(one.slot < one.node.room for one in placed)
