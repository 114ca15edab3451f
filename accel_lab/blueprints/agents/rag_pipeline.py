"""Answers questions from documents: embeds, searches on a device, and hands on what it found."""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

from accel_lab.actor.reply import Reply
from accel_lab.blueprints.agents.chunking import Chunk, chunks
from accel_lab.blueprints.agents.embedding_cache import Embedder, EmbeddingCache, Vectors
from accel_lab.blueprints.agents.vector_index import VectorIndex
from accel_lab.blueprints.patterns.base.batcher import MAX_BATCH, MAX_WAIT_S, require_wait
from accel_lab.blueprints.patterns.base.form import Form
from accel_lab.blueprints.patterns.base.pattern import Limits, Overflow, Place, Service
from accel_lab.blueprints.patterns.base.stage import Stage
from accel_lab.blueprints.patterns.batching import BatchingActor
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from accel_lab.pipeline.faults import is_fault
from accel_lab.pipeline.stage import require_count


class Source(NamedTuple):
    """A piece of a document that was found, and how near it is to the question."""

    document: str
    start: int
    stop: int
    text: str
    score: float


class Answered(NamedTuple):
    """The answer to a question, and what it was made from, the nearest first."""

    answer: Any
    sources: tuple[Source, ...]


class RagPipeline(Service):
    """Answers each question from the pieces of your documents that are nearest to it.

    Questions that wait together are embedded and searched together. Embedder and answer are called
    in threads, the embedder by one at a time. An error of `answer` fails its own question.

    Parameters:
        place: the system in which it lives, and in whose tree it stands.
        device: where the index is.
        embedder: gets a list of texts, and returns a vector for each.
        answer: gets the question and its sources, and returns the answer, or a reply of it. When
            not given, the answer is None, and the sources are there.
        model: the embedder's name in the cache; another embedder needs another one.
        cache: where embeddings are kept; one of its own when not given.
        lists, probes: see `VectorIndex`.
        size, overlap: see `chunks`.
        sources: how many of them a question has at most.
        max_batch, max_wait_s: as in `DynamicBatchingServer`.
        capacity, overflow, wait_s, timeout_s: see `Limits`.
        name: in the tree.

    Raises:
        InvalidArgument: an option does not fit.
    """

    kind: ClassVar[str] = "retrieval"

    def __init__(
        self,
        place: Place,
        device: Device,
        embedder: Embedder,
        answer: Callable[[str, tuple[Source, ...]], Any] | None = None,
        *,
        model: str = "embedder",
        cache: EmbeddingCache | None = None,
        lists: int | None = None,
        probes: int = 8,
        size: int = 800,
        overlap: int = 100,
        sources: int = 5,
        max_batch: int = MAX_BATCH,
        max_wait_s: float = MAX_WAIT_S,
        capacity: int = 1024,
        overflow: Overflow = "reject",
        wait_s: float = 10.0,
        timeout_s: float | None = None,
        name: str = "rag",
    ) -> None:
        for count, what in ((max_batch, "max_batch"), (sources, "sources")):
            require_count(count, what, 1)
        self._cut = partial(chunks, size=size, overlap=overlap)
        self._cut("", "")  # refuses what does not fit
        self.cache = EmbeddingCache() if cache is None else cache
        self.index = VectorIndex(device, lists=lists, probes=probes)
        self._embedder, self._model, self._answer = embedder, model, answer
        self._count = sources
        self._chunks: list[Chunk] = []
        self._names: set[str] = set()
        self._adding, self._embedding = threading.Lock(), threading.Lock()
        make = partial(
            BatchingActor,
            limits=Limits(capacity=capacity, overflow=overflow, wait_s=wait_s, timeout_s=timeout_s),
            stage=Stage(self._answers, parallelism=2, name=f"{name} answers"),
            form=Form(bucket=_require_text),
            max_batch=max_batch,
            max_wait_s=require_wait(max_wait_s),
        )
        super().__init__(place, name, make)

    def add(self, documents: Mapping[str, str]) -> int:
        """Add documents, text by name; return how many pieces they have. It blocks.

        Raises:
            InvalidArgument: a document of this name is there, or one is no text; none is added.
            WrongAnswer: the embedder's vectors do not fit; none is added.
        """
        with self._adding:
            for name, text in documents.items():
                if not isinstance(text, str):
                    raise InvalidArgument(f"document {name!r} is a str, and not {text!r}")
                if name in self._names:
                    raise InvalidArgument(f"there is a document {name!r}; give it another name")
            pieces = [one for name, text in documents.items() for one in self._cut(name, text)]
            if pieces:
                vectors = self._embed([one.text for one in pieces])
                self._chunks += pieces  # before its vector: what is found is there
                try:
                    self.index.add(vectors)
                except BaseException:
                    del self._chunks[-len(pieces) :]
                    raise
            self._names.update(documents)
            return len(pieces)

    def ask(self, value: str, *, priority: int = 0, timeout_s: float | None = None) -> Reply[Any]:
        """Send a question and return the reply of its `Answered`; cancelling that takes it back.

        Raises:
            InvalidArgument: the question is no text.
        """
        _require_text(value)
        return super().ask(value, priority=priority, timeout_s=timeout_s)

    def search(self, question: str, k: int | None = None) -> tuple[Source, ...]:
        """Return the nearest pieces alone; it blocks."""
        return self._found([question], self._count if k is None else k)[0]

    def _embed(self, texts: list[str]) -> Vectors:
        with self._embedding:
            return self.cache.embed(self._model, self._embedder, texts)

    def _found(self, questions: Sequence[str], k: int) -> list[tuple[Source, ...]]:
        if not len(self.index):
            return [() for _ in questions]
        nearest = self.index.search(self._embed(list(questions)), k)
        return [
            tuple(
                Source(**self._chunks[place]._asdict(), score=float(score))
                for place, score in zip(places, scores, strict=True)
                if place >= 0
            )
            for places, scores in zip(nearest.indices, nearest.scores, strict=True)
        ]

    def _answers(self, questions: list[str]) -> list[Any]:
        """Answer a batch: each question has its answer, or what its answer failed with."""
        found = self._found(questions, self._count)
        begun = [self._each(self._begin, *one) for one in zip(questions, found, strict=True)]
        ended = [self._each(_end, one) for one in begun]
        return [
            one if isinstance(one, BaseException) else Answered(one, sources)
            for one, sources in zip(ended, found, strict=True)
        ]

    def _begin(self, question: str, sources: tuple[Source, ...]) -> Any:
        return None if self._answer is None else self._answer(question, sources)

    @staticmethod
    def _each(function: Callable[..., Any], *args: Any) -> Any:
        """Return what a function returns or fails with; a fault has the whole batch run again."""
        try:
            return function(*args)
        except Exception as error:
            if is_fault(error, has_another=False):
                raise
            return error


def _require_text(question: Any) -> None:
    if not isinstance(question, str):
        raise InvalidArgument(f"a question is a str, and not {question!r}")


def _end(begun: Any) -> Any:
    return begun.result() if isinstance(begun, Reply) else begun
