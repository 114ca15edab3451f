"""The table of features is what the code says now."""

import runpy

from accel_lab.libraries.authoring.registration import messages
from accel_lab.library_modules import LIBRARIES
from tests.project import ROOT

REFERENCE = ROOT / "docs" / "reference"
PAGE = (REFERENCE / "features.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| `")]


def test_the_table_of_features_is_current() -> None:
    generated: str = runpy.run_path(str(REFERENCE / "make.py"))["page"]()
    assert generated == PAGE, "run `python -m docs.reference.make`"


def test_each_message_of_a_library_has_a_row() -> None:
    shown = [line.split("`")[1] for line in ROWS]
    assert sorted(shown) == sorted(k.__name__ for k in messages() if k.library in LIBRARIES)


def test_a_row_tells_backends_and_refusals_apart() -> None:
    """What guides say, too: cuBLAS multiplies no integers, and an event is of its moment."""
    gemm, _ = [line.split(" | ") for line in ROWS if line.startswith("| `Gemm` ")]  # CUTLASS's, too
    assert gemm[1:3] == ["all", "complex, float16 to float64"]
    assert gemm[4:] == ["yes", "yes |"]
    (record,) = [line.split(" | ") for line in ROWS if line.startswith("| `Record` ")]
    assert [cell.partition(":")[0] for cell in record[3:]] == ["no"] * 3
