"""A context keeps some of what is freed on the host: new arrays cost no page faults."""

import pytest

from accel_lab import System

WAIT = 60.0
MIB = 1 << 20


def faults(nbytes: int, count: int) -> int:
    """Return how many page faults a loop of so many arrays costs that were there before."""
    import resource

    import numpy as np

    def fill() -> None:
        for array in [np.empty(nbytes, np.uint8) for _ in range(count)]:
            array.fill(1)

    for _ in range(3):
        fill()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    fill()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_arrays_have_memory_that_was_freed_before() -> None:
    with System("host") as lab:
        assert lab.devices[0].run(faults, 3 * MIB, 60).result(WAIT) < 1000


@pytest.mark.parametrize(
    "chosen",
    [
        ("MALLOC_TRIM_THRESHOLD_", "131072"),
        ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=131072"),
    ],
    ids=["variable", "tunable"],
)
def test_what_the_user_has_said_of_that_stays(
    monkeypatch: pytest.MonkeyPatch, chosen: tuple[str, str]
) -> None:
    """Then each page comes from the system again."""
    monkeypatch.setenv(*chosen)
    with System("host") as lab:
        assert lab.devices[0].run(faults, 3 * MIB, 60).result(WAIT) > 10_000
