"""GGUF files are read as their specification says, and damaged ones are refused."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab.blueprints.language import GgufFile, Shape, Tokenizer, Weights
from accel_lab.blueprints.language.package import tokenizer_of
from accel_lab.errors import FileDamaged, InvalidArgument
from tests.blueprints.language.gguf_writer import F16, F32, Q4_1, Q8_0, write, write_model

SHAPE = Shape(vocabulary=256, width=16, heads=4, shared=2, hidden=24, layers=2, context=64)


def test_values_and_plain_tensors_come_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "some.gguf"
    values = {"a": "ünï", "b": 7, "c": 0.5, "d": ["x", "", "yz"], "e": [1, -2, 3]}
    x = np.arange(24, dtype="<f4").reshape(2, 3, 4)
    half = np.array([1.5, -2, 65504], "<f2")
    tensors: dict[str, Any] = {
        "x": (F32, x.shape, x.tobytes()),
        "half": (F16, half.shape, half.tobytes()),
    }
    write(path, values, tensors)
    file = GgufFile(path)
    assert file.values == values
    for name, wanted in [("x", x), ("half", half)]:
        made = file.read(name)
        assert made.dtype == np.float32
        np.testing.assert_array_equal(made, wanted)


def test_blocks_are_scales_and_small_integers(tmp_path: Path) -> None:
    """By the definition: number i of a block of Q4_1 is in the low half of byte i, below 16."""
    path, rng = tmp_path / "some.gguf", np.random.default_rng(1)
    four, eight = rng.integers(0, 16, (3, 2, 32)), rng.integers(-128, 128, (3, 2, 32))
    scales, offsets = rng.standard_normal((2, 3, 2)).astype("<f2")
    blocks = {"four": b"", "eight": b""}
    for place in np.ndindex(3, 2):
        of = four[place].tolist()
        bits = bytes(of[i] + 16 * of[i + 16] for i in range(16))
        blocks["four"] += struct.pack("<ee", scales[place], offsets[place]) + bits
        blocks["eight"] += struct.pack("<e32b", scales[place], *eight[place])
    write(
        path,
        {},
        {"four": (Q4_1, (3, 64), blocks["four"]), "eight": (Q8_0, (3, 64), blocks["eight"])},
    )
    wide, more = scales.astype("f4")[..., None], offsets.astype("f4")[..., None]
    file = GgufFile(path)
    np.testing.assert_array_equal(file.read("four"), (four * wide + more).reshape(3, 64))
    np.testing.assert_array_equal(file.read("eight"), (eight * wide).reshape(3, 64))


def test_a_model_comes_as_it_was_written(tmp_path: Path) -> None:
    path, weights = tmp_path / "model.gguf", Weights.random(SHAPE, 5)
    write_model(path, weights, Tokenizer.of_bytes())
    made = Weights.read(GgufFile(path))
    assert made.shape._replace(epsilon=SHAPE.epsilon) == SHAPE
    np.testing.assert_array_equal(made.embedding, weights.embedding)
    for ours, theirs in zip(made.layers, weights.layers, strict=True):
        for name, one, other in zip(ours._fields, ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=name)


def test_a_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_model(path, Weights.random(SHAPE, 5), Tokenizer.of_bytes())
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for end in [0, 3, 4, 23, *rng.integers(24, len(whole) - 64, 40).tolist()]:
        path.write_bytes(whole[:end])
        with pytest.raises(FileDamaged, match="is cut short"):
            Weights.read(GgufFile(path))


def test_what_is_no_gguf_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.gguf"
    begin = struct.pack("<IQQ", 3, 1, 1)
    for content, text in [
        (b"GGML" + begin, "begins with b'GGML', version 3"),
        (b"GGUF" + struct.pack("<IQQ", 9, 0, 0), "version 9; GGUF 2 or 3 is wanted"),
        (b"GGUF" + begin + struct.pack("<Q", 2**62), f"{2**62} bytes are wanted at 32, 0 are left"),
        (b"GGUF" + begin + struct.pack("<QI", 0, 77), "a value of kind 77"),
        (b"GGUF" + begin + struct.pack("<QIIQ", 0, 9, 9, 1), "a value of kind 9"),
        (b"GGUF" + struct.pack("<IQQQI", 3, 1, 0, 0, 9), "has 9 axes; 1 to 4 are wanted"),
        (
            b"GGUF"
            + struct.pack("<IQQQ", 3, 0, 1, 17)
            + b"general.alignment"
            + bytes([4] + [0] * 7),
            "the alignment is 0; 1 or more is wanted",
        ),
    ]:
        path.write_bytes(content)
        with pytest.raises(FileDamaged, match=text):
            GgufFile(path)


def test_what_is_not_read_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "some.gguf"
    write(path, {}, {"x": (14, (32,), bytes(64)), "y": (Q8_0, (40,), bytes(64))})
    file = GgufFile(path)
    with pytest.raises(InvalidArgument, match=r"x in some\.gguf has ggml's encoding 14"):
        file.read("x")
    with pytest.raises(FileDamaged, match="a row of y is 40, no multiple of 32"):
        file.read("y")
    with pytest.raises(InvalidArgument, match=r"some\.gguf has no tensor 'z'"):
        file.read("z")
    with pytest.raises(InvalidArgument, match="a model of kind None; 'llama' is read"):
        Weights.read(file)
    write(path, {"general.architecture": "llama"}, {})
    with pytest.raises(InvalidArgument, match=r"does not say llama\.embedding_length"):
        Weights.read(GgufFile(path))


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"llama.rope.dimension_count": 2}, r"has llama\.rope\.dimension_count, which"),
        ({"llama.rope.scaling.type": "yarn"}, r"has llama\.rope\.scaling\.type, which"),
        ({"llama.block_count": 1}, r"has blk\.1\.attn_k\.weight, which"),
        ({"llama.block_count": "two"}, "has 'two' as an extent; a number is wanted"),
        ({"llama.attention.head_count": 0}, "each is to be more than 0"),
        ({"llama.feed_forward_length": 20}, r"gate of layer 0 is float32 \(24, 16\)"),
    ],
)
def test_a_model_that_would_compute_something_else_is_refused(
    tmp_path: Path, other: dict[str, Any], text: str
) -> None:
    path = tmp_path / "model.gguf"
    write_model(path, Weights.random(SHAPE, 5), Tokenizer.of_bytes(), **other)
    with pytest.raises(InvalidArgument, match=text):
        Weights.read(GgufFile(path))


def test_a_tokenizer_comes_with_its_marks_and_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    values: dict[str, Any] = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": ["<s>", "a", "b", "ab"],
        "tokenizer.ggml.token_type": [3, 1, 1, 1],
        "tokenizer.ggml.merges": ["a b"],
    }
    write(path, values, {})
    assert tokenizer_of(GgufFile(path)).encode("ab<s>ba", special=True) == [3, 0, 2, 1]
    write(path, values | {"tokenizer.ggml.pre": "llama-bpe"}, {})
    with pytest.raises(InvalidArgument, match=r"kind .'gpt2', 'llama-bpe'.; .'gpt2', 'smollm'. is"):
        tokenizer_of(GgufFile(path))
