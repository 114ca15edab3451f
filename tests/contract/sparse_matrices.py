"""Sparse matrices for the contract: drawn dense, with where they store, then put in any format."""

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse

from accel_lab import array, sparse
from accel_lab.compute.device import Device
from accel_lab.libraries.sparse.library import SparseRef
from accel_lab.libraries.sparse.matrix import Format
from tests.contract.samples import reals

FORMATS: tuple[Format, ...] = ("csr", "csc", "coo", "bsr")


def drawn(seed: int, shape: tuple[int, int], dtype: str, density: float = 0.3) -> tuple[Any, Any]:
    """Draw a matrix and where it stores; outside it is 0, and one stored value in eight is."""
    rng = np.random.default_rng(seed)
    stored = rng.random(shape) < density
    values = reals(seed, shape, dtype)
    values[rng.random(shape) < 1 / 8] = 0
    return np.where(stored, values, np.zeros((), values.dtype)), stored


def put(
    device: Device, x: Any, stored: Any, format_: Format = "csr", index_dtype: str = "int32"
) -> SparseRef:
    """Put a matrix that stores at these places; of BSR blocks are 1 by 2, or 1 by 1."""
    rows, columns = np.nonzero(stored)
    values = x[rows, columns]
    places = scipy.sparse.csr_array((np.arange(1, rows.size + 1), (rows, columns)), shape=x.shape)
    if format_ == "bsr":
        width = 2 if x.shape[1] % 2 == 0 else 1
        a = put(device, x, stored, "csr", index_dtype)
        return a.tobsr((1, width))
    order: Any = places.asformat(format_)
    structure = order.coords[::-1] if format_ == "coo" else (order.indices, order.indptr)
    parts = [device.put(one.astype(index_dtype)) for one in structure]
    return SparseRef(format_, x.shape, index_dtype, device.put(values[order.data - 1]), *parts)


def dense(device: Device, a: SparseRef) -> Any:
    """Fetch a sparse matrix as a dense array, by its definition."""
    values, indices, pointers = (device.get(one).result(30) for one in a.parts)
    out = np.zeros(a.shape, values.dtype)
    if a.format == "coo":
        out[pointers, indices] = values
        return out
    for major, (begin, end) in enumerate(pairwise(pointers)):
        for at in range(begin, end):
            minor = indices[at]
            if a.format == "csr":
                out[major, minor] = values[at]
            elif a.format == "csc":
                out[minor, major] = values[at]
            else:
                _, step, width = values.shape
                row, column = major * step, minor * width
                out[row : row + step, column : column + width] = values[at]
    return out


def stored_in(device: Device, a: SparseRef) -> Any:
    """Return where a matrix stores."""
    ones = array.full(device, a.values.shape, 1, "float32")
    return dense(device, a.with_values(ones)) != 0


def assert_canonical(device: Device, a: SparseRef) -> None:
    """Assert that it is in order, nothing twice, as the device itself sees it."""
    sparse.verify(*a.parts, a.shape, a.format).indices.result(30)
