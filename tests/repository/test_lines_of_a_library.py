"""How much a message costs: the lines of a library on all floors and in its tests, by its messages.

What has the library's name counts, in the package and in the tests of libraries. A bound is what is
true now: lower it when a library shrinks, and think twice before raising it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel_lab.libraries.authoring.registration import messages
from accel_lab.library_modules import LIBRARIES
from tests.project import PACKAGE, ROOT
from tests.repository.test_add_a_library import PAGE, file_of
from tests.repository.test_docs import blocks

BOUNDS = {"array": 294, "blas": 151, "fft": 393}
"""The most lines a message; half of `fft` is what cuFFT lacks. `wgpu` has parts of all three.

Of `array` many functions are made of its messages and have none, as `einsum`.
"""
BOUND_OF_A_NEW_ONE = 122
"""Of the library on the page, which has one message."""
ROOMS = (
    PACKAGE,
    *(ROOT / "tests" / room for room in ("backends", "contract", "gpu/libraries", "libraries")),
)
ALSO = {
    "array": (
        "assigning", "counting", "indexing", "joining", "making", "matmul", "operators", "ordering",
        "products", "rebuilt", "reductions", "scanning", "shaping",
    )
}  # fmt: skip
"""Parts of a library that have tests under their own names."""


def files(library: str) -> Iterator[Path]:
    """Yield what has the library's name: its file or folder on each floor, its tests."""
    names = "|".join((library, *ALSO.get(library, ())))
    others = [one for one in LIBRARIES if one.startswith(f"{library}_")]  # `blas_lt` is not `blas`
    but = "".join(rf"(?!{one}\b)" for one in others)
    own = re.compile(rf"({library}|test_(cuda_)?{but}({names})(_\w+)?)(\.py)?")
    for folder in ROOMS:
        for path in folder.rglob("*.py"):
            if any(own.fullmatch(part) for part in path.relative_to(folder).parts):
                yield path


def lines(library: str) -> int:
    return sum(len(path.read_text().splitlines()) for path in files(library))


@pytest.mark.parametrize("library", BOUNDS)
def test_a_message_costs_no_more_than_it_did(library: str) -> None:
    count = sum(kind.library == library for kind in messages())
    assert count >= 3
    assert lines(library) / count <= BOUNDS[library]


@pytest.mark.parametrize("library", BOUNDS)
def test_a_bound_is_close_to_what_is_true(library: str) -> None:
    """One that is far above would hold nothing back."""
    count = sum(kind.library == library for kind in messages())
    assert lines(library) / count >= 0.97 * BOUNDS[library]


def test_a_new_library_is_small() -> None:
    """The files of the page and the line that names the library."""
    written = [block.code.splitlines()[1:] for block in blocks(PAGE) if file_of(block)]
    changed = [
        line
        for block in blocks(PAGE)
        if block.kind == "diff"
        for line in block.code.splitlines()
        if line.startswith("+") and not line.startswith("+++")
    ]
    assert len(changed) == 1
    assert len(written) == 4  # messages, host, cuda, tests
    assert sum(map(len, written)) + len(changed) <= BOUND_OF_A_NEW_ONE
