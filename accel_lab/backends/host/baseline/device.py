"""The machine as its libraries describe it, and its clock."""

from time import monotonic
from typing import Any

import numpy as np


def versions() -> dict[str, str]:
    """Return what only the context can tell of its libraries."""
    build: Any = np.show_config(mode="dicts")
    blas = build.get("Build Dependencies", {}).get("blas", {})
    return {"blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()}


def finished() -> float:
    """Return the time, in monotonic seconds, when all work so far is done: now."""
    return monotonic()
