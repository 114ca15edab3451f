"""Attention by cuDNN's operation graphs, which need not be installed.

cuDNN rounds weights to the dtype of the values. Its gradients are those that repeat their bits.
"""

from typing import Any, NamedTuple

from accel_lab.backends.cuda.handles.cudnn_disk import numbered
from accel_lab.libraries.attention.message import scale_of

TYPES = {"float16": "HALF", "bfloat16": "BFLOAT16"}
EIGHT = 8  # features come in groups of as many


class Key(NamedTuple):
    """All that a plan depends on.

    Attributes:
        gradient: whether it is the plan of the gradients.
        q, k, v: shapes.
        diagonal: where keys end that a query sees: "" for nowhere, TOP_LEFT or BOTTOM_RIGHT.
        lse: whether a forward plan writes it.
    """

    gradient: bool
    dtype: str
    q: tuple[int, ...]
    k: tuple[int, ...]
    v: tuple[int, ...]
    scale: float
    diagonal: str
    window: int
    alibi: bool
    sink: bool
    lse: bool


def key_of(m: Any, *, gradient: bool) -> Key | None:
    """Return the plan of a message; None where cuDNN lacks it, or would not give the same."""
    _, _, queries, width = m.q.shape
    keys, value_width = m.v.shape[2:]
    lse = not gradient and m.lse
    unlike = (
        m.q.dtype not in TYPES
        or not (m.q.size and m.k.size)
        or width % EIGHT
        or value_width % EIGHT
        or m.rate  # its random words are others
        or m.lengths_q is not None
        or m.lengths_k is not None
        or (m.sink is not None and (queries == 1 or lse or gradient))
        or (m.alibi and m.causal != "top_left")
        or (m.window and queries > keys)
        or (m.causal == "bottom_right" and queries > keys)
        or (queries == 1 and (gradient or m.causal == "top_left" or m.window))
    )
    if unlike:
        return None
    # One query beside the last key sees all keys.
    diagonal = "" if m.causal == "none" or queries == 1 else m.causal.upper()
    shapes = tuple(m.q.shape), tuple(m.k.shape), tuple(m.v.shape)
    scale, sink = scale_of(m, width), m.sink is not None
    return Key(gradient, m.q.dtype, *shapes, scale, diagonal, m.window, m.alibi, sink, lse)


def built(cudnn: Any, handle: int, key: Key) -> Any:
    """Return a built graph, given the operands and what is written."""
    graph, tensors = _described(cudnn, handle, key)
    numbered(tensors)
    graph.build([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    return graph


def _described(cudnn: Any, handle: int, key: Key) -> tuple[Any, list[Any]]:
    """Return a graph, and the tensors whose addresses it is given, those written last."""
    kind, wide = getattr(cudnn.data_type, TYPES[key.dtype]), cudnn.data_type.FLOAT
    graph = cudnn.pygraph(
        handle=handle,
        io_data_type=kind,
        intermediate_data_type=wide,
        compute_data_type=wide,
    )

    def tensor(name: str, shape: tuple[int, ...], type_: Any = kind) -> Any:
        return graph.tensor(name=name, dim=[*shape], stride=steps_of(shape), data_type=type_)

    def written(made: Any, shape: tuple[int, ...], type_: Any = kind) -> Any:
        made.set_output(True).set_dim([*shape]).set_stride(steps_of(shape)).set_data_type(type_)
        return made

    y, lse = (*key.q[:3], key.v[3]), (*key.q[:3], 1)
    names = ["q", "k", "v"]
    given = [tensor(name, shape) for name, shape in zip(names, key[2:5], strict=True)]
    options: dict[str, Any] = dict(zip(names, given, strict=True))
    options["attn_scale"] = key.scale
    if key.alibi:
        options["use_alibi_mask"] = True
    if key.diagonal:
        options["diagonal_alignment"] = getattr(cudnn.diagonal_alignment, key.diagonal)
        options["diagonal_band_right_bound"] = 0
    if key.window:
        options["diagonal_band_left_bound"] = key.window
    if key.gradient:
        of_y = [tensor("y", y), tensor("lse", lse, wide), tensor("dy", y)]
        more = dict(zip(("o", "stats", "dO"), of_y, strict=True))
        made = graph.sdpa_backward(**options, **more, use_deterministic_algorithm=True)
        pairs = zip(made, key[2:5], strict=True)
        return graph, [*given, *of_y, *(written(one, shape) for one, shape in pairs)]
    if key.sink:
        given.append(tensor("sink", (1, key.q[1], 1, 1), wide))
        options["sink_token"] = given[-1]
    made = graph.sdpa(**options, generate_stats=key.lse)
    results = [written(made[0], y)]
    if key.lse:
        results.append(written(made[1], lse, wide))
    return graph, [*given, *results]


def steps_of(shape: tuple[int, ...]) -> list[int]:
    """Return the steps of a contiguous array."""
    steps, step = [], 1
    for extent in reversed(shape):
        steps.append(step)
        step *= extent
    return steps[::-1]
