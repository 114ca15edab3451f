"""A language model in plain NumPy: all tokens at once, no cache, positions by complex numbers."""

from typing import Any

import numpy as np

from accel_lab.blueprints.language import LayerWeights, Shape, Weights


def logits(weights: Weights, tokens: list[int], dtype: str = "float64") -> Any:
    """Return, for each token, how likely each one is to come after it."""
    shape = weights.shape
    x = weights.embedding[tokens].astype(dtype)
    for layer in weights.layers:
        x = x + attended(shape, layer, normal(x, layer.attention_norm, shape))
        n = normal(x, layer.norm, shape)
        gate = n @ layer.gate.T
        x = x + (gate / (1 + np.exp(-gate)) * (n @ layer.up.T)) @ layer.down.T
    return normal(x, weights.norm, shape) @ weights.embedding.T.astype(dtype)


def normal(x: Any, scale: Any, shape: Shape) -> Any:
    """Divide each row by its root mean square."""
    return x / np.sqrt((x**2).mean(axis=1, keepdims=True) + shape.epsilon) * scale


def attended(shape: Shape, layer: LayerWeights, x: Any) -> Any:
    """Return what each token makes of those up to itself, head by head."""
    features, count = shape.features, len(x)
    future = np.triu(np.full((count, count), -np.inf), 1)
    made = []
    for head in range(shape.heads):
        served = head * shape.shared // shape.heads
        q = turned(x @ layer.q[head * features : (head + 1) * features].T, shape.base)
        rows = slice(served * features, (served + 1) * features)
        k, v = turned(x @ layer.k[rows].T, shape.base), x @ layer.v[rows].T
        scores = q @ k.T / features**0.5 + future
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        made.append(raised / raised.sum(axis=1, keepdims=True) @ v)
    return np.concatenate(made, axis=1).astype(x.dtype) @ layer.output.T


def turned(x: Any, base: float) -> Any:
    """Turn pairs of neighbours, as complex numbers, by the position times a power of the base."""
    count, features = x.shape
    speeds = base ** -(np.arange(0, features, 2) / features)
    pairs = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * np.outer(np.arange(count), speeds))
    return np.stack([pairs.real, pairs.imag], axis=2).reshape(count, features).astype(x.dtype)


def greedy(weights: Weights, tokens: list[int], limit: int) -> list[int]:
    """Return the most likely continuation, token by token, all computed anew for each."""
    text = list(tokens)
    for _ in range(limit):
        text.append(int(logits(weights, text)[-1].argmax()))
    return text[len(tokens) :]


def is_greedy(weights: Weights, tokens: list[int], more: list[int]) -> bool:
    """Whether `more` is the most likely continuation: each of its tokens, after those before it.

    One pass over all of it says that: what is computed for a token depends on none behind it.
    """
    made = logits(weights, [*tokens, *more[:-1]], "float32")
    return bool(np.array_equal(made[len(tokens) - 1 :].argmax(axis=1), more))
