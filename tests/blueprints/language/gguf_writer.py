"""A GGUF file as its specification says it, written value by value."""

import struct
from pathlib import Path
from typing import Any

import numpy as np

from accel_lab.blueprints.language import Tokenizer, Weights

UNIT = 32
F32, F16, Q4_1, Q8_0 = 0, 1, 3, 8
LAYER = (
    "attn_norm",
    "attn_q",
    "attn_k",
    "attn_v",
    "attn_output",
    "ffn_norm",
    "ffn_gate",
    "ffn_up",
    "ffn_down",
)


def string(text: str) -> bytes:
    content = text.encode()
    return struct.pack("<Q", len(content)) + content


def value(given: Any) -> bytes:
    """Return a value with its kind before it."""
    if isinstance(given, str):
        return struct.pack("<I", 8) + string(given)
    if isinstance(given, float):
        return struct.pack("<If", 6, given)
    if isinstance(given, int):
        return struct.pack("<II", 4, given)
    inner = 8 if isinstance(given[0], str) else 5
    items = b"".join(string(one) if inner == 8 else struct.pack("<i", one) for one in given)
    return struct.pack("<IIQ", 9, inner, len(given)) + items


def write(path: Path, values: dict[str, Any], tensors: dict[str, tuple[int, Any, bytes]]) -> None:
    """Write a file; a tensor is its encoding, its shape as NumPy has it, and its bytes."""
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    for name, given in values.items():
        header += string(name) + value(given)
    content = b""
    for name, (kind, shape, stored) in tensors.items():
        header += string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
        header += struct.pack("<IQ", kind, len(content))
        content += stored + bytes(-len(stored) % UNIT)
    path.write_bytes(header + bytes(-len(header) % UNIT) + content)


def plain(array: Any) -> tuple[int, Any, bytes]:
    return F32, array.shape, array.astype("<f4").tobytes()


def write_model(path: Path, weights: Weights, tokenizer: Tokenizer, **other: Any) -> None:
    """Write a model as llama.cpp has it, in float32."""
    one = weights.shape
    values = {
        "general.architecture": "llama",
        "llama.embedding_length": one.width,
        "llama.attention.head_count": one.heads,
        "llama.attention.head_count_kv": one.shared,
        "llama.feed_forward_length": one.hidden,
        "llama.block_count": one.layers,
        "llama.context_length": one.context,
        "llama.rope.freq_base": one.base,
        "llama.attention.layer_norm_rms_epsilon": float(np.float32(one.epsilon)),
        "tokenizer.ggml.tokens": tokenizer.tokens,
    }
    tensors = {
        "token_embd.weight": plain(weights.embedding),
        "output_norm.weight": plain(weights.norm),
    }
    for number, layer in enumerate(weights.layers):
        for name, array in zip(LAYER, layer, strict=True):
            tensors[f"blk.{number}.{name}.weight"] = plain(array)
    write(path, values | other, tensors)
