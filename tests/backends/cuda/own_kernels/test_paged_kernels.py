"""The kernels that read and write pages, run on the CPU, against products on the host."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from accel_lab.backends.cuda.attention import decoding
from accel_lab.backends.cuda.attention.paged_kernels import PagedKernels
from accel_lab.backends.host.attention.library import HostAttention
from accel_lab.libraries.attention.evaluation.paged import Pages
from accel_lab.libraries.attention.pages import MakeCache
from tests.backends.cuda.own_kernels.on_host import HostLaunches
from tests.conftest import require
from tests.contract.samples import reals
from tests.contract.tolerances import EPS

HOST = HostAttention()
SPAN = 64  # so that there are several blocks for few keys


@pytest.fixture(scope="module")
def launches() -> HostLaunches:
    require("compiler")
    return HostLaunches()


@pytest.fixture(scope="module")
def kernels(launches: HostLaunches) -> Any:
    """Return the kernels, whose blocks see fewer keys."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "SPAN", SPAN)
        yield PagedKernels(launches)


def aligned(x: Any) -> Any:
    """Return a copy that begins where memory of a card does."""
    room = np.zeros(x.nbytes + 256, np.uint8)
    at = -room.ctypes.data % 256
    made = room[at : at + x.nbytes].view(x.dtype).reshape(x.shape)
    made[...] = x
    return made


def filled(
    dtype: str, shared: int, width: int, page_size: int, lengths: list[int], spare: int = 1
) -> Pages:
    """Return a cache whose sequences were appended alternately, so that pages are mixed."""
    many = sum(-(-n // page_size) for n in lengths) + spare
    pages = HOST.make_cache(MakeCache(shared, width, many, page_size=page_size, dtype=dtype))
    pages = replace(pages, keys=aligned(pages.keys), values=aligned(pages.values))
    pages.keys[...] = pages.values[...] = np.nan  # what nobody has written nobody reads
    step = max(1, page_size - 1)
    for at in range(0, max([*lengths, 1]), step):
        for number, length in enumerate(lengths):
            count = min(step, max(length - at, 0))
            places = pages.table.places((number,), count)
            k, v = (
                reals(31 * at + 7 * number + i, (1, shared, count, width), dtype) for i in (0, 1)
            )
            HOST.cache_append(pages, places, k, v)
    return pages


def message(q: Any, dtype: str, count: int, **options: Any) -> Any:
    of_q = SimpleNamespace(dtype=dtype, shape=q.shape, size=q.size)
    plain = {"scale": None, "window": 0, "alibi": False, "lse": True, "sequences": (*range(count),)}
    return SimpleNamespace(q=of_q, **{**plain, **options})


def made(q: Any, dtype: str) -> Any:
    wide = "float64" if dtype == "float64" else "float32"
    return SimpleNamespace(y=np.zeros(q.shape, q.dtype), lse=np.zeros(q.shape[:3], wide))


CASES: dict[str, tuple[str, int, int, int, int, list[int], int, dict[str, Any]]] = {
    "a token": ("float32", 9, 3, 64, 16, [37], 1, {}),
    "page borders": ("float32", 4, 2, 64, 16, [15, 16, 17, 1, 0], 1, {}),
    "splits": ("float32", 2, 2, 64, 16, [64, 65, 200, 3], 1, {"scale": -0.3}),
    "odd features": ("float32", 3, 1, 5, 3, [7, 70], 2, {"alibi": True}),
    "one feature": ("float32", 2, 1, 1, 1, [5], 1, {}),
    "a window": ("float64", 4, 2, 40, 4, [90, 9, 2], 3, {"window": 7}),
    "a wide window": ("float64", 4, 4, 40, 4, [200, 70], 2, {"window": 100, "alibi": True}),
    "more queries than tokens": ("float64", 2, 1, 40, 8, [3, 0, 9], 8, {}),
    "many pages": ("float64", 1, 1, 40, 1, [130] * 8, 1, {}),
    "bfloat16": ("bfloat16", 6, 2, 36, 4, [9, 66], 2, {"window": 65}),
    "float16": ("float16", 2, 2, 8, 5, [10, 11], 1, {"alibi": True}),
}


@pytest.mark.parametrize("with_sink", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_few_queries_get_what_products_give(
    kernels: PagedKernels, launches: HostLaunches, case: str, *, with_sink: bool
) -> None:
    dtype, heads, shared, width, page_size, lengths, rows, options = CASES[case]
    pages = filled(dtype, shared, width, page_size, lengths)
    tokens = reals(3, (len(lengths), rows, heads, width), dtype)
    q = tokens.transpose(0, 2, 1, 3)  # a view, as of tokens whose heads lie behind each other
    sink = reals(4, (2 * heads,), dtype)[::2] if with_sink else None
    m = message(q, dtype, len(lengths), **options)
    found = [pages.table.sequence(number) for number in m.sequences]
    exact, got, again = (made(q, dtype) for _ in range(3))
    HOST.cache_attend(m, pages, q, sink, exact)
    launches.launched.clear()
    assert kernels.attend(m, pages, found, q, sink, got)
    seen = min(max(lengths), m.window or max(lengths))
    assert launches.launched == ["attend", "merge"][: 1 + (seen > SPAN)]
    wide = "float64" if dtype == "float64" else "float32"
    off = 64 * EPS[wide]
    y, expected = (one.y.astype("float64") for one in (got, exact))
    np.testing.assert_allclose(y, expected, rtol=EPS[dtype], atol=off)
    np.testing.assert_allclose(got.lse, exact.lse, rtol=off, atol=off)
    assert kernels.attend(m, pages, found, q, sink, again)
    assert got.y.tobytes() == again.y.tobytes()
    assert got.lse.tobytes() == again.lse.tobytes()


@pytest.mark.parametrize("what", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 70])
def test_what_is_no_number_spreads_as_in_products(
    kernels: PagedKernels, at: int, what: float
) -> None:
    pages = filled("float64", 2, 40, 4, [90])
    page, offset = pages.table.sequence(0).pages[at // 4], at % 4
    pages.keys[page, 0, offset, 1] = what
    pages.values[page, 1, offset, 2] = what
    q = reals(3, (1, 2, 1, 40), "float64")
    m, exact, got = message(q, "float64", 1), made(q, "float64"), made(q, "float64")
    HOST.cache_attend(m, pages, q, None, exact)
    assert kernels.attend(m, pages, [pages.table.sequence(0)], q, None, got)
    np.testing.assert_allclose(got.y, exact.y, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(got.lse, exact.lse, rtol=1e-12)


def test_what_the_kernel_lacks_is_left_to_products(kernels: PagedKernels) -> None:
    pages = filled("float32", 1, 64, 16, [20])
    found = [pages.table.sequence(0)]
    for rows in (0, decoding.MOST_QUERIES + 1):
        q = reals(1, (1, 1, rows, 64), "float32")
        assert not kernels.attend(
            message(q, "float32", 1), pages, found, q, None, made(q, "float32")
        )


def test_an_argument_is_not_larger_than_a_kernels_may_be() -> None:
    for argument in (decoding.AttendArgument(id), decoding.AppendArgument(id)):
        assert argument.nbytes <= 4096


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
@pytest.mark.parametrize(("count", "tokens"), [(1, 1), (3, 1), (2, 9), (1, 600), (2, 0)])
def test_tokens_are_appended_where_their_places_are(
    kernels: PagedKernels, dtype: str, count: int, tokens: int
) -> None:
    pages, other = (filled(dtype, 2, 6, 4, [3, 4, 9], spare=200) for _ in range(2))
    k = reals(5, (count, 2, tokens, 6), dtype)
    v = reals(6, (count, tokens, 2, 12), dtype).transpose(0, 2, 1, 3)[..., ::-2]
    places = pages.table.places((*range(count),), tokens)
    kernels.append(pages, places, k, v)
    HOST.cache_append(other, other.table.places((*range(count),), tokens), k, v)
    for got, expected in ((pages.keys, other.keys), (pages.values, other.values)):
        assert got.tobytes() == expected.tobytes()
