"""What the contract tests of `libraries.blas` share: cases and definitions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from accel_lab.compute.arrays.dtypes import is_complex, numpy_dtype
from accel_lab.libraries.blas.library import Trans
from tests.contract.samples import Layout, extents, layouts, seeds

Support = Mapping[str, frozenset[str]]
Draw = Callable[[int, tuple[int, ...], str], Any]

TRANS: tuple[Trans, ...] = ("n", "t", "c")
PREFIX = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


@dataclass(frozen=True)
class Case:
    """One product: op(a) is (m, k), op(b) is (k, n)."""

    seed: int
    m: int
    n: int
    k: int
    trans_a: Trans
    trans_b: Trans
    layout: Layout

    def operands(self, draw: Draw, dtype: str) -> tuple[Any, Any, Any]:
        """Draw a, b and c."""
        a = draw(self.seed, turned_shape(self.m, self.k, self.trans_a), dtype)
        b = draw(self.seed + 1, turned_shape(self.k, self.n, self.trans_b), dtype)
        return a, b, draw(self.seed + 2, (self.m, self.n), dtype)

    def turned(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Return op(a) and op(b)."""
        return turn(a, self.trans_a), turn(b, self.trans_b)


def cases(least: int = 0) -> st.SearchStrategy[Case]:
    """Draw products whose extents are not below `least`."""
    extent = extents.map(lambda n: max(n, least))
    trans = st.sampled_from(TRANS)
    return st.builds(
        Case, seeds, m=extent, n=extent, k=extent, trans_a=trans, trans_b=trans, layout=layouts
    )


def turn(x: Any, trans: Trans) -> Any:
    """Return op(x)."""
    turned = x if trans == "n" else x.swapaxes(-1, -2)
    return turned.conj() if trans == "c" else turned


def turned_shape(rows: int, columns: int, trans: Trans) -> tuple[int, int]:
    """Return the shape of x when op(x) is (rows, columns)."""
    return (rows, columns) if trans == "n" else (columns, rows)


def sum_of_products(a: Any, b: Any, dtype: str, c: Any = 0) -> Any:
    """Form a @ b + c by the definition, exactly, and round once to the dtype."""
    kind = complex if is_complex(dtype) else int
    exact = a.astype(kind) @ b.astype(kind) + np.asarray(c).astype(kind)
    return np.asarray(exact).astype(numpy_dtype(dtype))
