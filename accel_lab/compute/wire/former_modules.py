"""Where pickles in old journals find modules that have moved: they hold the names of their time.

Aliases of modules would not do: some old names, as `compute.execution`, are rooms now.
"""

_COMPUTE = "accel_lab.compute."
_MOVED = {
    "backend": "execution.backend",
    "buffer": "message.buffer",
    "execution": "cells.cell_execution",
    "generators": "cells.random_generators",
    "global_generators": "cells.global_random",
    "meter": "execution.cost_meter",
    "own_classes": "wire.main_classes",
    "pickler": "user_code.pickler",
    "plain": "cells.plain_data",
    "tensors": "arrays.torch_interop",
    "workspaces": "cells.workspace_registry",
    "wrapped": "user_code.functools_pickle",
}
"""The modules whose functions and classes pickles of calls name."""


def now(module: str) -> str:
    """Return what a module of this package is called today; any other name as it is."""
    if not module.startswith(_COMPUTE):
        return module
    moved = _MOVED.get(module.removeprefix(_COMPUTE))
    return module if moved is None else _COMPUTE + moved
