"""How many threads linear algebra on the CPU has in a context: as many as in any other process.

A BLAS starts its threads when it is loaded, and the process that forks contexts must have no thread
but its own. So it begins with one, and each fork has the others started.
"""

import json
import os
from collections.abc import MutableMapping

from threadpoolctl import ThreadpoolController

_NAMES = {
    "openblas": "OPENBLAS_NUM_THREADS",
    "mkl": "MKL_NUM_THREADS",
    "blis": "BLIS_NUM_THREADS",
    "openmp": "OMP_NUM_THREADS",
}
_BEFORE = "ACCEL_LAB_THREADS_BEFORE"


def have_one(environment: MutableMapping[str, str]) -> None:
    """Have a process that starts with these variables begin with one thread."""
    environment[_BEFORE] = json.dumps({name: environment.get(name) for name in _NAMES.values()})
    environment.update(dict.fromkeys(_NAMES.values(), "1"))


def loaded() -> ThreadpoolController:
    """Take the variables back, for what is imported later, and return what is loaded by now."""
    for name, value in json.loads(os.environ.pop(_BEFORE, "{}")).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    return ThreadpoolController()


def have_all(controller: ThreadpoolController) -> None:
    """Have what was loaded with one thread start the others; in a fork."""
    cores = len(os.sched_getaffinity(0))
    for api, name in _NAMES.items():
        chosen = os.environ.get(name) or os.environ.get(_NAMES["openmp"], "")
        count = chosen.partition(",")[0]  # OpenMP takes a number for each level
        most = int(count) if count.isdecimal() else 0
        if api == "openblas":
            most = min(most, cores)
        default = 1 if api == "blis" else cores
        controller.select(internal_api=api).limit(limits=most or default)
