"""Keeps the embeddings of texts, by text and model, the least recently used go first."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_lab.actor.reply import Reply
from accel_lab.blueprints.patterns.base.errors import wrong_answer
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.pipeline.stage import require_count

Vectors = npt.NDArray[np.float32]
Embedder = Callable[[list[str]], Any]
"""Returns one vector for each text: an array, a handle or a reply of (texts, dimension)."""


class EmbeddingCache:
    """Embeds texts, and computes those alone that it does not have; any thread.

    It compares the texts themselves, not hashes of them, so two texts never share an embedding.

    Attributes:
        capacity: how many embeddings it keeps, of all models together.
        hits, misses: how many texts it had, and had to compute.
    """

    def __init__(self, capacity: int = 10_000) -> None:
        require_count(capacity, "capacity", 1)
        self.capacity = capacity
        self.hits = self.misses = 0
        self._kept: OrderedDict[tuple[str, str], Vectors] = OrderedDict()
        self._dimensions: dict[str, int] = {}
        self._lock = threading.Lock()

    def embed(self, model: str, embedder: Embedder, texts: Sequence[str]) -> Vectors:
        """Return the embeddings of texts, float32 of (texts, dimension).

        Parameters:
            model: the name by which the embeddings are kept; another model has another one.
            embedder: called once, with each missing text once, if any is missing.

        Raises:
            InvalidArgument: a text is no string.
            WrongAnswer: the embedder returned another number of vectors, vectors of another
                dimension than before, or such as are not finite. Nothing of them is kept.
        """
        for one in texts:
            if not isinstance(one, str):
                raise InvalidArgument(f"a text to embed is a str, and not {one!r}")
        with self._lock:
            found = {text: self._take(model, text) for text in dict.fromkeys(texts)}
        missing = [text for text, vector in found.items() if vector is None]
        if missing:
            vectors = self._computed(model, embedder, missing)
            found.update(zip(missing, vectors, strict=True))
        with self._lock:
            self.hits += len(texts) - len(missing)
            self.misses += len(missing)
            dimension = self._dimensions.get(model, 0)
        rows = [found[text] for text in texts]
        return np.array(rows, np.float32).reshape(len(rows), dimension)

    def _take(self, model: str, text: str) -> Vectors | None:
        vector = self._kept.get((model, text))
        if vector is not None:
            self._kept.move_to_end((model, text))
        return vector

    def _computed(self, model: str, embedder: Embedder, texts: list[str]) -> Vectors:
        answer = embedder(list(texts))
        if isinstance(answer, AccelRef):
            answer = answer.get()
        elif isinstance(answer, Reply):
            answer = answer.result()
        vectors = np.array(answer, np.float32)  # a copy: the embedder may use its own again
        with self._lock:
            dimension = self._dimensions.get(model, vectors.shape[-1] if vectors.ndim else 0)
            if vectors.shape != (len(texts), dimension) or not dimension:
                expected = f"array of shape ({len(texts)}, {dimension or 'dimension'})"
                raise wrong_answer(f"embedding with {model}", "embedder", expected, vectors)
            if not np.isfinite(vectors).all():
                raise wrong_answer(f"embedding with {model}", "embedder", "finite", vectors)
            self._dimensions[model] = dimension
            for text, vector in zip(texts, vectors, strict=True):
                self._kept[model, text] = vector.copy()  # a view would keep all of them
                self._kept.move_to_end((model, text))
            while len(self._kept) > self.capacity:
                self._kept.popitem(last=False)
        return vectors

    def __len__(self) -> int:
        return len(self._kept)

    def __repr__(self) -> str:
        asked = f"{self.hits} hits, {self.misses} misses"
        return f"<EmbeddingCache {len(self)} of {self.capacity}, {asked}>"
