"""A small GPT: blocks of causal attention and of a wide layer, each behind a norm.

Radford et al., "Language models are unsupervised multitask learners", 2019; without dropout.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accel_lab.blueprints.train.autograd.elementwise import add
from accel_lab.blueprints.train.autograd.layers import embedding, gelu
from accel_lab.blueprints.train.autograd.norms import layer_norm
from accel_lab.blueprints.train.autograd.products import attention, linear
from accel_lab.blueprints.train.autograd.shaping import part, reshape, transpose
from accel_lab.blueprints.train.autograd.variable import Variable, plain_ref
from accel_lab.blueprints.train.losses import cross_entropy
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument

Array = npt.NDArray[Any]
_WIDER = 4
_SPREAD = 0.02


class GPT(NamedTuple):
    """The shape of a model; its parameters are a dict that trainers take.

    Tokens are int64[batch, places], of at most `length` places. `loss` is what a trainer takes: the
    mean cross-entropy of the next token at each place.

    Attributes:
        vocabulary: how many tokens there are.
        length: the most places.
        width: features a place; a multiple of `heads`.
        heads: of attention.
        blocks: how many blocks.
    """

    vocabulary: int
    length: int = 64
    width: int = 64
    heads: int = 4
    blocks: int = 2

    def parameters(self, seed: int = 0) -> dict[str, Array]:
        """Return what training begins with: weights of a narrow normal distribution.

        Raises:
            InvalidArgument: a size is no integer from 1, or the heads do not share out the width.
        """
        for name, size in self._asdict().items():
            if type(size) is not int or size < 1:
                raise InvalidArgument(f"GPT: {name} is {size!r}; it is an integer from 1")
        if self.width % self.heads:
            text = f"width is {self.width}, and there are {self.heads} heads"
            raise InvalidArgument(f"GPT: {text}; it is to be a multiple of them")
        random = np.random.default_rng(seed)

        def matrix(rows: int, columns: int, spread: float = _SPREAD) -> Array:
            return (random.standard_normal((rows, columns)) * spread).astype("float32")

        def zeros(count: int) -> Array:
            return np.zeros(count, "float32")

        wide, n = self.width * _WIDER, self.width
        # What is added to the sum of all blocks begins narrower, the more there are.
        added = _SPREAD / np.sqrt(2 * self.blocks)
        made = {"tokens": matrix(self.vocabulary, n), "places": matrix(self.length, n)}
        for at in range(self.blocks):
            made |= {
                f"{at}.norm1": np.ones(n, "float32"),
                f"{at}.norm1_bias": zeros(n),
                f"{at}.qkv": matrix(3 * n, n),
                f"{at}.qkv_bias": zeros(3 * n),
                f"{at}.out": matrix(n, n, added),
                f"{at}.out_bias": zeros(n),
                f"{at}.norm2": np.ones(n, "float32"),
                f"{at}.norm2_bias": zeros(n),
                f"{at}.up": matrix(wide, n),
                f"{at}.up_bias": zeros(wide),
                f"{at}.down": matrix(n, wide, added),
                f"{at}.down_bias": zeros(n),
            }
        return made | {"norm": np.ones(n, "float32"), "norm_bias": zeros(n)}

    def logits(self, p: Mapping[str, Any], tokens: Any) -> Variable:
        """Return the logits (batch, places, vocabulary) of the token that follows each.

        Raises:
            InvalidArgument: `tokens` are no matrix, or have more places than the model.
        """
        at = plain_ref(tokens, "GPT: tokens")
        if at.ndim != 2 or at.shape[1] > self.length:  # noqa: PLR2004 - a matrix
            text = f"tokens is {at.label}; it is to be (batch, at most {self.length} places)"
            raise InvalidArgument(f"GPT: {text}")
        x = add(embedding(p["tokens"], at), part(p["places"], slice(0, at.shape[1])))
        for block in range(self.blocks):
            x = add(x, self._attended(p, f"{block}.", x))
            hidden = layer_norm(x, p[f"{block}.norm2"], p[f"{block}.norm2_bias"])
            hidden = gelu(linear(hidden, p[f"{block}.up"], p[f"{block}.up_bias"]))
            x = add(x, linear(hidden, p[f"{block}.down"], p[f"{block}.down_bias"]))
        return linear(layer_norm(x, p["norm"], p["norm_bias"]), p["tokens"])

    def loss(self, p: Mapping[str, Any], tokens: Any, following: Any) -> Variable:
        """Return the mean cross-entropy of the tokens that follow, (batch, places)."""
        return cross_entropy(self.logits(p, tokens).astype("float32"), following)

    def write(
        self,
        device: Device,
        parameters: Mapping[str, npt.ArrayLike],
        begun: npt.ArrayLike,
        count: int,
        *,
        seed: int = 0,
    ) -> list[int]:
        """Return `count` tokens that follow those of `begun`, each drawn as it is likely; blocks.

        Raises:
            InvalidArgument: nothing was begun.
        """
        tokens = [int(one) for one in np.asarray(begun).reshape(-1)]
        if not tokens:
            raise InvalidArgument("GPT: write goes on from one token at least, and there is none")
        random = np.random.default_rng(seed)
        p = {name: device.put(np.asarray(x)) for name, x in parameters.items()}
        for _ in range(count):
            seen = device.put(np.array([tokens[-self.length :]], np.int64))
            scores = self.logits(p, seen).get()[0, -1].astype("float64")
            shares = np.exp(scores - scores.max())
            tokens.append(int(random.choice(self.vocabulary, p=shares / shares.sum())))
        return tokens[-count:] if count else []

    def _attended(self, p: Mapping[str, Any], block: str, x: Variable) -> Variable:
        """Return what each place takes from those before it, (batch, places, width)."""
        batch, places, width = x.shape
        normed = layer_norm(x, p[f"{block}norm1"], p[f"{block}norm1_bias"])
        both = linear(normed, p[f"{block}qkv"], p[f"{block}qkv_bias"])
        shape = batch, places, 3, self.heads, width // self.heads
        qkv = transpose(reshape(both, shape), (2, 0, 3, 1, 4))
        heads = attention(part(qkv, 0), part(qkv, 1), part(qkv, 2), causal=True)
        joined = reshape(transpose(heads, (0, 2, 1, 3)), x.shape)
        return linear(joined, p[f"{block}out"], p[f"{block}out_bias"])
