"""Where the global generators of `random`, NumPy and PyTorch are, as plain data."""

import random
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.random import mtrand


def states() -> dict[str, Any]:
    """Return the states of those that are loaded."""
    version, words, gauss = random.getstate()
    found: dict[str, Any] = {
        "random": [version, np.array(words, np.uint32), gauss],
        "numpy": mtrand.get_state(legacy=False),
        "seeded": mtrand.get_bit_generator().seed_seq is None,
    }
    if "torch" in sys.modules:
        found["torch"] = sys.modules["torch"].get_rng_state().numpy().copy()
    return found


def set_states(found: Mapping[str, Any]) -> None:
    """Have this process draw on from there.

    Raises:
        Exception: these are no states.
    """
    version, words, gauss = found["random"]
    random.setstate((version, tuple(map(int, words)), gauss))
    if found["seeded"]:  # which cells' contexts ask for
        mtrand.seed(0)
    mtrand.set_state(found["numpy"])
    if "torch" in found and "torch" in sys.modules:
        torch: Any = sys.modules["torch"]
        with suppress(RuntimeError):  # of another version
            torch.set_rng_state(torch.from_numpy(found["torch"]))
