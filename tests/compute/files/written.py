"""Files as bytes, for tests that damage them."""

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np


def npy(array: Any) -> bytes:
    """Return what NumPy writes of an array."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npy_of(header: str, data: bytes = b"", version: int = 1) -> bytes:
    """Return a `.npy` with any header."""
    text = header.encode()
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes((version, 0)) + length + text + data


def npz(arrays: Mapping[str, Any], *, packed: bool = False) -> bytes:
    """Return what NumPy writes of several arrays."""
    file = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(file, **arrays)
    return file.getvalue()


def safetensors_of(header: object, data: bytes = b"") -> bytes:
    """Return a `.safetensors` with any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    """Return the entry of one array in a header."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
