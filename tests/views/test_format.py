"""Sizes, by the cases that the front end is held to as well."""

import json
from pathlib import Path

from accel_lab.display.sizes import memory, size

CASES = json.loads(Path(__file__).with_name("format_cases.json").read_text())


def test_sizes_read_as_the_cases_say() -> None:
    assert [size(n) for n, _ in CASES["size"]] == [text for _, text in CASES["size"]]


def test_memory_reads_as_the_cases_say() -> None:
    written = [memory(used, total) for used, total, _ in CASES["memory"]]
    assert written == [text for _, _, text in CASES["memory"]]
