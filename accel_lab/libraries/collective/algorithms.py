"""Which way a collective operation takes, as both the contexts and their viewers know it."""

TREE_BYTES = 32 << 10
"""On the host up to this many bytes go by a tree, and more around a ring. Judged."""
_ALONG = {
    "all_reduce": "ring",
    "reduce_scatter": "ring",
    "all_gather": "ring",
    "reduce": "chain",
    "broadcast": "chain",
}


def algorithm(backend: str, call: str, nbytes: int, ranks: int) -> str:
    """Return which way a backend takes: "ring", "chain", "tree", "direct", or whose choice it is.

    Parameters:
        nbytes: of the whole array.
    """
    if backend != "host":
        return "nccl"
    if ranks == 1:
        return "copy"
    if call == "barrier":
        return "tree"
    if call in ("all_reduce", "reduce", "broadcast") and nbytes <= TREE_BYTES:
        return "tree"
    return _ALONG.get(call, "direct")
