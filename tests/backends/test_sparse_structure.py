"""Where sparse matrices store, by array operations alone, against SciPy; here with NumPy's arrays.

`cuda` computes the same with CuPy's.
"""

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from accel_lab.backends.sparse_structure import owners, packed, rows_of, unpacked
from accel_lab.libraries.sparse.matrix import Format
from tests.contract.sparse_matrices import FORMATS, drawn


def scipys(x: Any, format_: Format) -> tuple[Any, Any, Any]:
    made: Any = scipy.sparse.csr_array(x).asformat(format_)
    if format_ == "bsr":
        made = scipy.sparse.csr_array(x).tobsr((2, 3))
        made.sort_indices()
    if format_ == "coo":
        return made.data, made.coords[1], made.coords[0]
    return made.data, made.indices, made.indptr


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("shape", [(6, 9), (0, 3), (4, 0), (2, 300)], ids=str)
def test_every_format_becomes_every_other(
    shape: tuple[int, int], format_: Format, to: Format
) -> None:
    x = drawn(3, shape, "float64")[0]
    triples = unpacked(np, format_, *scipys(x, format_))
    if format_ == "bsr":  # which stores zeros, too
        kept = triples.values != 0
        triples = type(triples)(*(one[kept] for one in triples))
    made = packed(np, to, shape, triples, (2, 3) if to == "bsr" else ())
    for one, other in zip(made, scipys(x, to), strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_are_found_without_repeating_as_well() -> None:
    for counts in ([], [0], [3], [0, 2, 0, 1, 0], [5, 0, 0]):
        pointers = np.concatenate(([0], np.cumsum(counts))).astype("int64")
        total = sum(counts)
        found = owners(np, pointers, total)
        np.testing.assert_array_equal(found, rows_of(np, pointers, total))
        assert found.dtype == pointers.dtype
