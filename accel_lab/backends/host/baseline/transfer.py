"""Bytes to where the library computes and back."""

from functools import cache
from time import perf_counter
from typing import Any

import numpy as np


def labels() -> dict[str, str]:
    """Return what the peers are called."""
    return {
        "upload": "np.copy",
        "download": "np.copy",
        "limit": "np.copyto",
    }


def upload(nbytes: int) -> float:
    """Copy an array to where the library computes."""
    source, _ = _bytes(nbytes)
    begin = perf_counter()
    np.copy(source)
    return perf_counter() - begin


def download(nbytes: int) -> float:
    """Copy an array to where the user reads it; on the host the same."""
    return upload(nbytes)


def upload_limit(nbytes: int) -> float:
    """Copy between arrays that are there already, as fast as memory goes."""
    source, target = _bytes(nbytes)
    begin = perf_counter()
    np.copyto(target, source)
    return perf_counter() - begin


def download_limit(nbytes: int) -> float:
    """Copy the other way; on the host the same."""
    return upload_limit(nbytes)


@cache
def _bytes(nbytes: int) -> tuple[Any, Any]:
    return np.ones(nbytes, np.uint8), np.zeros(nbytes, np.uint8) + np.uint8(1)
