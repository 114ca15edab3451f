"""Sizes, by the cases that the front end is held to as well."""

import json
from pathlib import Path

from accel_lab.display.buffer_number import short
from accel_lab.display.sizes import compared, memory, size

CASES = json.loads(Path(__file__).with_name("format_cases.json").read_text())


def test_sizes_read_as_the_cases_say() -> None:
    assert [size(n) for n, _ in CASES["size"]] == [text for _, text in CASES["size"]]


def test_numbers_of_buffers_read_as_the_cases_say() -> None:
    assert [short(n) for n, _ in CASES["buffer"]] == [text for _, text in CASES["buffer"]]


def test_memory_reads_as_the_cases_say() -> None:
    written = [memory(used, total) for used, total, _ in CASES["memory"]]
    assert written == [text for _, _, text in CASES["memory"]]


def test_sizes_that_are_compared_are_told_apart() -> None:
    near, far, same = ((1 << 20) + 1, 1 << 20), (1 << 20, 1 << 10), (1 << 20, 1 << 20)
    assert list(map(compared(*near), near)) == ["1,048,577 B", "1,048,576 B"]
    assert list(map(compared(*far), far)) == ["1 MiB", "1 KiB"]
    assert list(map(compared(*same), same)) == ["1 MiB", "1 MiB"]
