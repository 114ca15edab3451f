"""A language model on a device: a Llama (Touvron et al., 2023), each step a message of ours.

An embedding, then layers of attention and a gated product (SwiGLU), each after an RMS norm and
beside what goes past it, and the product with the embedding. Positions turn queries and keys (Su
et al., RoFormer, 2021); fewer heads of keys and values serve those of the queries.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from accel_lab.blueprints.language.weights import LayerWeights, Shape, Weights
from accel_lab.compute.device import Device, device_first
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries import array, blas, dnn
from accel_lab.libraries.attention import KVCache

Array: TypeAlias = npt.NDArray[Any]

PART_BYTES = 32 << 20
"""An array is sent in parts of about this size: the record keeps uploads up to 64 MiB."""


class Layer(NamedTuple):
    """What one layer has on a device; the products that read the same are one matrix."""

    attention_norm: AccelRef
    qkv: AccelRef
    output: AccelRef
    norm: AccelRef
    gate_up: AccelRef
    down: AccelRef


class LanguageModel:
    """The weights of a model on a device, and what they make of tokens.

    Parameters:
        weights: float32, as `Weights` says.

    Attributes:
        shape: the extents.

    Raises:
        InvalidArgument: weights do not fit to their shape.
    """

    def __init__(self, device: Device, weights: Weights) -> None:
        weights.require()
        self.device, self.shape = device_first(device), weights.shape
        self.embedding = _in_parts(device, weights.embedding)
        self.norm = device.put(weights.norm)
        self.layers = [_layer(device, one) for one in weights.layers]
        self.cos, self.sin = map(device.put, turns(weights.shape))

    def logits(
        self,
        tokens: Sequence[Sequence[int]],
        caches: Sequence[KVCache],
        sequences: Sequence[int],
        at: Sequence[int],
    ) -> AccelRef:
        """Append tokens to texts; return how likely each is to come next, a row for each text.

        Does not wait. `Texts` says what is wrong with tokens; here nothing is looked at.

        Parameters:
            tokens: as many for each text.
            caches: one for each layer.
            sequences: the numbers of the texts in the caches.
            at: how many tokens each has there.
        """
        indices = np.asarray(tokens, np.int64)
        texts, count = indices.shape
        x = dnn.embedding(self.embedding, self.device.put(indices.reshape(-1)))
        turn = self._turn(at, count)
        for layer, cache in zip(self.layers, caches, strict=True):
            x = self._attended(layer, x, cache, sequences, turn)
            x = self._gated(layer, x)
        last = x.reshape(texts, count, self.shape.width)[:, -1]
        normal = dnn.rms_norm(last, self.norm, epsilon=self.shape.epsilon)
        if texts == 1:
            row = blas.gemv(self.embedding, normal.reshape(self.shape.width))
            return row.reshape(1, self.shape.vocabulary)
        return blas.gemm(normal, self.embedding, trans_b="t")

    def _turn(self, at: Sequence[int], count: int) -> tuple[AccelRef, AccelRef]:
        """Return by what tokens behind so many are turned, (texts, 1, tokens, pairs, 2) of each."""
        shape = (len(at), 1, count, self.shape.features // 2, 2)
        if len(at) == 1:
            begin = at[0]
            return (
                self.cos[begin : begin + count].reshape(shape),
                self.sin[begin : begin + count].reshape(shape),
            )
        places = np.add.outer(np.asarray(at, np.int64), np.arange(count)).reshape(-1)
        rows = self.device.put(places)
        return (
            array.take(self.cos, rows, axis=0).reshape(shape),
            array.take(self.sin, rows, axis=0).reshape(shape),
        )

    def _attended(
        self,
        layer: Layer,
        x: AccelRef,
        cache: KVCache,
        sequences: Sequence[int],
        turn: tuple[AccelRef, AccelRef],
    ) -> AccelRef:
        one, texts = self.shape, len(sequences)
        (cos, sin), count = turn, x.shape[0] // len(sequences)
        normal = dnn.rms_norm(x, layer.attention_norm, epsilon=one.epsilon)
        made = blas.gemm(normal, layer.qkv, trans_b="t")
        heads = made.reshape(texts, count, one.heads + 2 * one.shared, one.features // 2, 2)
        heads = heads.transpose(0, 2, 1, 3, 4)  # texts, heads, tokens, pairs
        qk, v = heads[:, : -one.shared], heads[:, -one.shared :]
        turned = (qk * cos + qk[..., ::-1] * sin).reshape(texts, -1, count, one.features)
        keys, values = turned[:, one.heads :], v.reshape(texts, one.shared, count, one.features)
        cache.append(keys, values, sequences)
        seen = cache.attend(turned[:, : one.heads], sequences).y
        joined = seen.transpose(0, 2, 1, 3).reshape(texts * count, one.width)
        return blas.gemm(joined, layer.output, x, beta=1.0, trans_b="t")

    def _gated(self, layer: Layer, x: AccelRef) -> AccelRef:
        normal = dnn.rms_norm(x, layer.norm, epsilon=self.shape.epsilon)
        made = blas.gemm(normal, layer.gate_up, trans_b="t")
        hidden = self.shape.hidden
        gated = dnn.swish(made[:, :hidden]) * made[:, hidden:]
        return blas.gemm(gated, layer.down, x, beta=1.0, trans_b="t")


def turns(shape: Shape) -> tuple[Array, Array]:
    """Return by what pairs of features are multiplied, and by what their exchanged ones.

    (a, b) is turned by an angle to (a cos - b sin, b cos + a sin): (positions, pairs, 2) of each.
    """
    pairs = np.arange(shape.features // 2)
    angles = np.arange(shape.context)[:, None] * shape.base ** (-2 * pairs / shape.features)
    cos, sin = np.cos(angles), np.sin(angles)
    own, exchanged = np.stack([cos, cos], -1), np.stack([-sin, sin], -1)
    return own.astype(np.float32), exchanged.astype(np.float32)


def _layer(device: Device, one: LayerWeights) -> Layer:
    qkv, gate_up = np.concatenate([one.q, one.k, one.v]), np.concatenate([one.gate, one.up])
    whole = (one.attention_norm, qkv, one.output, one.norm, gate_up, one.down)
    return Layer(*map(device.put, whole))


def _in_parts(device: Device, whole: Array) -> AccelRef:
    parts = np.array_split(whole, whole.nbytes // PART_BYTES + 1)
    return array.concatenate([device.put(part) for part in parts])
