"""Attention by cuDNN to keys and values in pages: of one token each, or of a part of each prompt.

A plan is of a number of pages that is a power of two, so that a sequence that grows needs a new one
seldom. A plan is also of a number of queries, so parts of any other size than chunks are left to
products. cuDNN rounds weights to the dtype of the values.
"""

from typing import Any, NamedTuple

from accel_lab.backends.cuda.attention.cudnn import EIGHT, TYPES, steps_of
from accel_lab.backends.cuda.handles.cudnn_disk import numbered
from accel_lab.libraries.attention.message import scale_of

CHUNK = 64  # queries; a part of a prompt that cuDNN attends has a multiple of them
LEAST_PAGE = 16  # tokens; smaller pages, and those of no power of two, have not been tried


class PagedKey(NamedTuple):
    """All that a plan depends on.

    Attributes:
        q: shape of the queries.
        cache: shape of the keys, and of the values.
        pages: how many a sequence may have.
        lse: whether it writes that.
    """

    dtype: str
    q: tuple[int, ...]
    cache: tuple[int, ...]
    pages: int
    scale: float
    lse: bool


def paged_key(m: Any, cache: tuple[int, ...], lengths: list[int]) -> PagedKey | None:
    """Return the plan of a message; None where cuDNN lacks it, or has not been tried.

    Parameters:
        lengths: how many tokens each sequence has.
    """
    _, _, queries, width = m.q.shape
    page_size = cache[2]
    unlike = (
        m.q.dtype not in TYPES
        or not (queries == 1 or (queries and queries % CHUNK == 0))
        or width % EIGHT
        or page_size < LEAST_PAGE
        or page_size.bit_count() != 1
        or min(lengths, default=0) < queries
        or m.sink is not None
        or m.alibi
        or m.window
    )
    if unlike:
        return None
    pages = 1 << (-(-max(lengths) // page_size) - 1).bit_length()
    return PagedKey(m.q.dtype, tuple(m.q.shape), tuple(cache), pages, scale_of(m, width), m.lse)


def built(cudnn: Any, handle: int, key: PagedKey) -> Any:
    """Return a built graph, given queries, keys, values, pages, both lengths, and what is written.

    Pages are int32 (sequences, pages), lengths int32 (sequences).
    """
    graph, tensors = described(cudnn, key, handle=handle)
    numbered(tensors)
    graph.build([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    return graph


def described(cudnn: Any, key: PagedKey, **of: int) -> tuple[Any, list[Any]]:
    """Return a graph, and the tensors whose addresses it is given, those written last.

    Parameters:
        of: whose graph it is, `handle`; or `sm_version` where there is no card.
    """
    kind, wide = getattr(cudnn.data_type, TYPES[key.dtype]), cudnn.data_type.FLOAT
    graph = cudnn.pygraph(
        io_data_type=kind,
        intermediate_data_type=wide,
        compute_data_type=wide,
        **of,
    )

    def tensor(name: str, shape: tuple[int, ...], type_: Any = kind) -> Any:
        return graph.tensor(name=name, dim=[*shape], stride=steps_of(shape), data_type=type_)

    sequences, _, queries, _ = key.q
    q, k, v = (tensor(*one) for one in (("q", key.q), ("k", key.cache), ("v", key.cache)))
    counts = cudnn.data_type.INT32
    table = tensor("pages", (sequences, 1, key.pages, 1), counts)
    of_q, of_k = (tensor(name, (sequences, 1, 1, 1), counts) for name in ("queries", "keys"))
    options: dict[str, Any] = {}
    if queries > 1:  # one query, which is beside the last key, sees all
        options["diagonal_alignment"] = cudnn.diagonal_alignment.BOTTOM_RIGHT
        options["diagonal_band_right_bound"] = 0
    y, lse = graph.sdpa(
        q=q,
        k=k,
        v=v,
        attn_scale=key.scale,
        use_padding_mask=True,
        seq_len_q=of_q,
        seq_len_kv=of_k,
        paged_attention_k_table=table,
        paged_attention_v_table=table,
        paged_attention_max_seq_len_kv=key.pages * key.cache[2],
        generate_stats=key.lse,
        **options,
    )
    y.set_output(True).set_dim([*key.q]).set_stride(steps_of(key.q)).set_data_type(kind)
    made = [y]
    if key.lse:
        shape = (*key.q[:3], 1)
        lse.set_output(True).set_dim([*shape]).set_stride(steps_of(shape)).set_data_type(wide)
        made.append(lse)
    return graph, [q, k, v, table, of_q, of_k, *made]
