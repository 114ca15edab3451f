"""What libraries hold of a device's memory in `%%gpu` cells, beside the buffers.

What names lead to is seen; PyTorch and JAX also tell what their allocators keep for themselves.
"""

import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

KNOWN = {"torch": "PyTorch", "cupy": "CuPy", "jax": "JAX", "jaxlib": "JAX", "numpy": "NumPy"}


class LibraryMemory(NamedTuple):
    """What one library holds.

    Attributes:
        names: those of `%%gpu` cells that lead to it, the largest first.
    """

    library: str
    nbytes: int
    names: tuple[str, ...]


def by_library(
    named: Iterable[tuple[str, Any, int]], allocators: Iterable[tuple[str, int]]
) -> list[LibraryMemory]:
    """Return what each library holds, the largest first.

    Parameters:
        named: a name, an array that it leads to, and the array's bytes; each array once.
        allocators: what libraries say of their own, with what nothing leads to.
    """
    found: dict[str, dict[str, int]] = {}
    for name, array, nbytes in named:
        package = type(array).__module__.partition(".")[0]
        names = found.setdefault(KNOWN.get(package, package), {})
        names[name] = names.get(name, 0) + nbytes
    totals = {library: sum(names.values()) for library, names in found.items()}
    for library, nbytes in allocators:
        totals[library] = max(nbytes, totals.get(library, 0))
    return [
        LibraryMemory(
            library,
            totals[library],
            tuple(sorted(names := found.get(library, {}), key=lambda name: -names[name])),
        )
        for library in sorted(totals, key=lambda library: -totals[library])
        if totals[library]
    ]


def allocators() -> list[tuple[str, int]]:
    """Return what PyTorch and JAX have of the card, where code has used them there."""
    found: list[tuple[str, int]] = []
    with suppress(Exception):  # strange as a version may be, the error itself is to arrive
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            found.append(("PyTorch", int(torch.cuda.memory_reserved())))
    with suppress(Exception):  # as above
        started = getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None) or {}
        for name, backend in started.items():
            if name in ("cuda", "gpu"):
                stats = backend.local_devices()[0].memory_stats() or {}
                found.append(("JAX", int(stats.get("pool_bytes", stats.get("bytes_in_use", 0)))))
    return found
