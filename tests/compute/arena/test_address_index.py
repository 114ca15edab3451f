"""What has an address, found among many."""

import random
import time

from accel_lab.compute.arena.address_index import AddressIndex


def test_it_finds_what_looking_at_everything_finds() -> None:
    draw = random.Random(3)
    index = AddressIndex[int]()
    ranges: list[tuple[int, int]] = []
    for item in range(400):
        start, nbytes = draw.randrange(1 << 12), draw.choice([0, 1, 2, 3, 64, 65, 1000, 5000])
        ranges.append((start, start + nbytes))
        index.add(start, nbytes, item)
    for address in range(0, 1 << 13, 7):
        expected = {i for i, (start, end) in enumerate(ranges) if start <= address < end}
        assert set(index.at(address)) == expected
        assert index.has(address) == bool(expected)


def test_a_range_is_entered_once_however_it_lies() -> None:
    index = AddressIndex[str]()
    index.add(1000, 48, "across two steps")
    index.add(1 << 47, 1 << 40, "large")
    assert list(index.at(1030)) == ["across two steps"]
    assert list(index.at((1 << 47) + 5)) == ["large"]
    assert not index.has(999)
    assert not index.has(1048)


def test_a_hundred_thousand_take_no_longer_each_than_a_thousand() -> None:
    def taken(count: int) -> float:
        index, began = AddressIndex[int](), time.thread_time()
        for i in range(count):
            index.add(i << 9, 512, i)
        assert all(index.has((i << 9) + 511) for i in range(count))
        return time.thread_time() - began

    assert taken(100_000) < 1000 * min(taken(1000) for _ in range(3))
