"""What a language model has learned, and its extents: those of a Llama."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from accel_lab.blueprints.language.gguf import GgufFile
from accel_lab.errors import InvalidArgument

Array: TypeAlias = npt.NDArray[Any]


_LAYER = (
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
"""GGUF's names of what a layer has, in the order of `LayerWeights`."""

_SHAPE = (
    "embedding_length",
    "attention.head_count",
    "attention.head_count_kv",
    "feed_forward_length",
    "block_count",
    "context_length",
    "rope.freq_base",
    "attention.layer_norm_rms_epsilon",
)
"""GGUF's names of extents, in the order of `Shape`."""


class Shape(NamedTuple):
    """The extents of a model.

    Attributes:
        vocabulary: how many tokens there are.
        width: numbers of a token between layers.
        heads: of the queries.
        shared: of keys and values; each serves as many heads of the queries.
        hidden: numbers between the two products of a layer's second half.
        layers: how many.
        context: the most tokens of a text.
        base: of the angles by which queries and keys are turned.
        epsilon: what is added to a mean square.
    """

    vocabulary: int
    width: int
    heads: int
    shared: int
    hidden: int
    layers: int
    context: int = 2048
    base: float = 10000.0
    epsilon: float = 1e-5

    @property
    def features(self) -> int:
        """How many a head has."""
        return self.width // self.heads

    def require(self) -> None:
        """Refuse extents that do not fit to each other.

        Raises:
            InvalidArgument: they do not, or are none.
        """
        if min(self) <= 0:
            raise InvalidArgument(f"{self}: each is to be more than 0")
        if self.width % (2 * self.heads) or self.heads % self.shared:
            text = f"width {self.width}, heads {self.heads}, shared {self.shared}"
            raise InvalidArgument(
                f"{text}: heads need an even number of features, and shared ones as many each"
            )


class LayerWeights(NamedTuple):
    """What one layer has learned; matrices are (what comes out, what goes in).

    Rows of `q` and `k` are in the order of GGUF: features 2i and 2i + 1 of a head are turned
    together.
    """

    attention_norm: Array
    q: Array
    k: Array
    v: Array
    output: Array
    norm: Array
    gate: Array
    up: Array
    down: Array


class Weights(NamedTuple):
    """What a model has learned.

    Attributes:
        embedding: a row for each token; the product with it also says which token comes next.
        norm: of what the last layer makes.
    """

    shape: Shape
    embedding: Array
    layers: tuple[LayerWeights, ...]
    norm: Array

    def require(self) -> None:
        """Refuse what does not fit to the shape.

        Raises:
            InvalidArgument: an array is of another shape, or extents do not fit to each other.
        """
        one = self.shape
        one.require()
        if len(self.layers) != one.layers:
            raise InvalidArgument(f"weights are of {len(self.layers)} layers, not of {one.layers}")
        for name, array, wanted in self._arrays():
            if array.shape != wanted or array.dtype != np.float32:
                found = f"{name} is {array.dtype} {array.shape}"
                raise InvalidArgument(f"{found}; float32 {wanted} is wanted")

    def _arrays(self) -> Iterator[tuple[str, Array, tuple[int, ...]]]:
        one = self.shape
        width, hidden, shared = one.width, one.hidden, one.shared * one.features
        yield "embedding", self.embedding, (one.vocabulary, width)
        yield "norm", self.norm, (width,)
        for number, layer in enumerate(self.layers):
            wanted: dict[str, tuple[int, ...]] = {
                "attention_norm": (width,),
                "q": (width, width),
                "k": (shared, width),
                "v": (shared, width),
                "output": (width, width),
                "norm": (width,),
                "gate": (hidden, width),
                "up": (hidden, width),
                "down": (width, hidden),
            }
            for name, shape in wanted.items():
                yield f"{name} of layer {number}", getattr(layer, name), shape

    @classmethod
    def random(cls, shape: Shape, seed: int) -> Self:
        """Return weights that have learned nothing, to try a model with."""
        draw = np.random.default_rng(seed).standard_normal
        shared = shape.shared * shape.features

        def matrix(rows: int, columns: int) -> Array:
            made: Array = draw((rows, columns)) * columns**-0.5
            return made.astype(np.float32)

        def scale() -> Array:
            return np.asarray(1 + 0.1 * draw(shape.width), np.float32)

        layers = tuple(
            LayerWeights(
                attention_norm=scale(),
                q=matrix(shape.width, shape.width),
                k=matrix(shared, shape.width),
                v=matrix(shared, shape.width),
                output=matrix(shape.width, shape.width),
                norm=scale(),
                gate=matrix(shape.hidden, shape.width),
                up=matrix(shape.hidden, shape.width),
                down=matrix(shape.width, shape.hidden),
            )
            for _ in range(shape.layers)
        )
        made = cls(shape, matrix(shape.vocabulary, shape.width), layers, scale())
        made.require()
        return made

    @classmethod
    def read(cls, file: GgufFile) -> Self:
        """Return the weights of a GGUF file of a Llama whose output is its embedding.

        Raises:
            InvalidArgument: it has a model of another kind, or lacks a tensor.
            FileDamaged: it is cut short.
        """
        shape = _shape(file)
        layers = tuple(
            LayerWeights(*(file.read(f"blk.{number}.{name}.weight") for name in _LAYER))
            for number in range(shape.layers)
        )
        made = cls(shape, file.read("token_embd.weight"), layers, file.read("output_norm.weight"))
        made.require()
        return made


def _shape(file: GgufFile) -> Shape:
    """Read the extents, and refuse whatever would make other numbers than `LanguageModel` does."""
    values, name = file.values, file.path.name
    kind = values.get("general.architecture")
    if kind != "llama":
        raise InvalidArgument(f"{name} has a model of kind {kind!r}; 'llama' is read")
    try:
        said = [values[f"llama.{one}"] for one in _SHAPE]
    except KeyError as error:
        raise InvalidArgument(f"{name} does not say {error.args[0]}") from error
    if wrong := [one for one in said if not isinstance(one, int | float)]:
        raise InvalidArgument(f"{name} has {wrong[0]!r} as an extent; a number is wanted")
    shape = Shape(len(values.get("tokenizer.ggml.tokens", ())), *said)
    shape.require()
    known = {f"blk.{number}.{one}.weight" for number in range(shape.layers) for one in _LAYER}
    more = sorted(set(file.tensors) - known - {"token_embd.weight", "output_norm.weight"})
    scaled = [one for one in values if one.startswith("llama.rope.scaling.")]
    if values.get("llama.rope.dimension_count", shape.features) != shape.features:
        scaled.append("llama.rope.dimension_count")
    if more or scaled:
        text = f"{name} has {(more + scaled)[0]}, which the model here would leave out"
        raise InvalidArgument(text)
    return shape
