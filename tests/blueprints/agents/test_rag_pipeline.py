"""Answers from documents, against a search by NumPy; and the parts of it against their laws."""

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from accel_lab import Device, System
from accel_lab.blueprints.agents import EmbeddingCache, RagPipeline, VectorIndex, chunks
from accel_lab.blueprints.patterns import WrongAnswer
from accel_lab.errors import AccelError, InvalidArgument, StageFailed
from tests.blueprints.patterns.load import adds_up, load

TOPICS = ("whales", "volcanoes", "violins", "bread", "orbits", "glaciers")
WORDS = ("old", "large", "quiet", "seen", "made", "known", "north", "first", "slow", "bright")


def embed(texts: list[str]) -> npt.NDArray[np.float32]:
    """Count words in 64 places: what a text is about tells in it."""
    rows = np.zeros((len(texts), 64), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.lower().replace(".", " ").replace("?", " ").split():
            row[zlib.crc32(word.encode()) % 64] += 1
    return rows


def corpus() -> dict[str, str]:
    rng = np.random.default_rng(7)
    return {
        f"{topic}-{number}": " ".join(
            f"{topic} {' '.join(rng.choice(WORDS, 4))}." for _ in range(6)
        )
        for topic in TOPICS
        for number in range(4)
    }


def ranked(vectors: Any, queries: Any, k: int) -> npt.NDArray[np.int64]:
    """Return the nearest of each query by NumPy; of equal ones the first comes first."""
    scores = np.asarray(queries, np.float64) @ np.asarray(vectors, np.float64).T
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


# --- its parts ---


@settings(max_examples=60)
@given(
    text=st.text(alphabet="ab \n", max_size=200),
    size=st.integers(1, 30),
    overlap=st.integers(0, 29),
)
def test_pieces_cover_a_document_and_overlap(text: str, size: int, overlap: int) -> None:
    if overlap >= size:
        with pytest.raises(InvalidArgument, match="overlap"):
            chunks("d", text, size=size, overlap=overlap)
        return
    found = list(chunks("d", text, size=size, overlap=overlap))
    assert all(one.text == text[one.start : one.stop] and one.document == "d" for one in found)
    assert all(0 < len(one.text) <= size for one in found)
    assert [one.start for one in found[1:]] == [one.stop - overlap for one in found[:-1]]
    assert (found[0].start, found[-1].stop) == (0, len(text)) if text else not found
    for one in found[:-1]:  # no later place after a space would have fitted
        later = text[one.stop : one.start + size]
        assert not any(letter.isspace() for letter in later)


@settings(max_examples=40)
@given(
    capacity=st.integers(1, 4),
    calls=st.lists(
        st.tuples(st.sampled_from("AB"), st.lists(st.sampled_from("pqrstu"), max_size=4)),
        max_size=12,
    ),
)
def test_a_cache_computes_what_a_plain_lru_would(
    capacity: int, calls: list[tuple[str, list[str]]]
) -> None:
    cache, asked = EmbeddingCache(capacity), list[list[str]]()
    kept: list[tuple[str, str]] = []  # the least recently used first
    sizes = {"A": 2, "B": 3}

    def vectors(model: str, texts: list[str]) -> npt.NDArray[np.float32]:
        return np.array([[ord(text) + n for n in range(sizes[model])] for text in texts])

    for model, texts in calls:
        missing = [one for one in dict.fromkeys(texts) if (model, one) not in kept]
        had = [(model, one) for one in dict.fromkeys(texts) if (model, one) in kept]
        kept = [one for one in kept if one not in had] + had
        kept = (kept + [(model, one) for one in missing])[-capacity:]

        def embedder(texts: list[str], model: str = model) -> npt.NDArray[np.float32]:
            asked.append(texts)
            return vectors(model, texts)

        before = len(asked)
        found = cache.embed(model, embedder, texts)
        if texts:
            np.testing.assert_array_equal(found, vectors(model, texts))
        assert found.dtype == np.float32
        assert asked[before:] == ([missing] if missing else [])
        assert len(cache) == len(kept)
    assert cache.hits + cache.misses == sum(len(texts) for _, texts in calls)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (np.zeros((2, 4)), r"expected was array of shape \(2, 3\)"),
        (np.zeros((1, 3)), r"array of shape \(1, 3\)|shape \(2, 3\)"),
        (np.full((2, 3), np.nan), "finite"),
        (np.zeros(6), r"shape \(6,\)"),
    ],
)
def test_a_cache_checks_what_an_embedder_returns(answer: Any, expected: str) -> None:
    cache = EmbeddingCache()
    cache.embed("m", lambda texts: np.ones((len(texts), 3)), ["known"])
    with pytest.raises(WrongAnswer, match=expected):
        cache.embed("m", lambda _: answer, ["new", "newer"])
    assert len(cache) == 1
    assert cache.embed("other", lambda _: np.ones((1, 9)), ["known"]).shape == (1, 9)
    with pytest.raises(InvalidArgument, match="str"):
        cache.embed("m", embed, [b"known"])  # type: ignore[list-item]


def test_an_embedder_may_answer_from_a_device(device: Device) -> None:
    found = EmbeddingCache().embed("m", lambda texts: device.put(embed(texts)), ["a b", "c"])
    np.testing.assert_array_equal(found, embed(["a b", "c"]))


whole = st.integers(-3, 3).map(float)


@settings(max_examples=12, deadline=None)
@given(data=st.data(), lists=st.sampled_from([None, 1, 3]))
def test_an_index_ranks_as_numpy_does(device: Device, data: st.DataObject, lists: Any) -> None:
    size = data.draw(st.integers(1, 4))
    vectors = data.draw(arrays(np.float32, (data.draw(st.integers(1, 12)), size), elements=whole))
    queries = data.draw(arrays(np.float32, (data.draw(st.integers(1, 2)), size), elements=whole))
    k = data.draw(st.integers(1, 14))
    index = VectorIndex(device, lists=lists, probes=99, cosine=False)
    index.add(vectors[: len(vectors) // 2].reshape(-1, size))
    index.add(vectors[len(vectors) // 2 :])
    found = index.search(queries, k)
    there = min(k, len(vectors))
    expected = ranked(vectors, queries, k)
    np.testing.assert_array_equal(found.indices[:, :there], expected)  # all are whole numbers
    np.testing.assert_array_equal(
        found.scores[:, :there], np.take_along_axis(queries @ vectors.T, expected, 1)
    )
    assert (found.indices[:, there:] == -1).all()
    assert (found.scores[:, there:] == -np.inf).all()


def test_lists_find_nearly_all_by_looking_into_few(device: Device) -> None:
    rng = np.random.default_rng(3)
    centres = rng.normal(size=(16, 24))
    vectors = np.repeat(centres, 40, axis=0) + 0.15 * rng.normal(size=(640, 24))
    queries = centres[:8] + 0.15 * rng.normal(size=(8, 24))
    index = VectorIndex(device, lists=16, probes=4)
    index.add(vectors)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = ranked(unit, queries, 5)
    few, whole_search = index.search(queries, 5), index.search(queries, 5, probes=16)
    pairs = zip(few.indices, expected, strict=True)
    assert np.mean([len({*a} & {*b}) / 5 for a, b in pairs]) >= 0.9
    np.testing.assert_array_equal(whole_search.indices, expected)


def test_an_index_refuses_what_does_not_fit(device: Device) -> None:
    index = VectorIndex(device)
    assert (index.search(np.ones((1, 3)), 2).indices == -1).all()
    index.add(np.ones((2, 3)))
    for wrong, text in (
        (np.ones((1, 4)), r"\(n, 3\), and not \(1, 4\)"),
        (np.ones(3), r"not \(3,\)"),
        ([[0, 1, np.nan]], "finite"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            index.add(wrong)
        with pytest.raises(InvalidArgument, match=text):
            index.search(wrong, 1)
    assert len(index) == 2
    with pytest.raises(InvalidArgument, match="k"):
        index.search(np.ones((1, 3)), 0)


# --- the whole of it ---


@pytest.mark.parametrize("lists", [None, 6])
def test_what_is_found_is_what_an_exact_search_finds(
    lab: System, device: Device, lists: int | None
) -> None:
    """Recall at 5 equals the exact search's, and each source is where it says."""
    documents = corpus()
    with RagPipeline(
        lab, device, embed, lambda q, s: (q, s[0].document), lists=lists, size=80, overlap=20
    ) as rag:
        count = rag.add(documents)
        pieces = [
            one
            for name, text in documents.items()
            for one in chunks(name, text, size=80, overlap=20)
        ]
        assert count == len(pieces)
        questions = [f"What is {word} about {topic}?" for topic in TOPICS for word in WORDS[:2]]
        replies = [rag.ask(one) for one in questions]
        vectors = embed([one.text for one in pieces])
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        scores = embed(questions) @ vectors.T
        scores /= np.linalg.norm(embed(questions), axis=1, keepdims=True)
        hits = best = 0
        for question, row, reply in zip(questions, scores, replies, strict=True):
            (asked, first), sources = reply.result(60)
            topic = question.split()[-1].rstrip("?")
            exact = np.argsort(-row, kind="stable")[:5]
            hits += sum(one.document.startswith(topic) for one in sources)
            best += sum(pieces[place].document.startswith(topic) for place in exact)
            np.testing.assert_allclose([s.score for s in sources], row[exact], rtol=1e-5)
            assert (asked, first) == (question, sources[0].document)
            for one in sources:
                assert documents[one.document][one.start : one.stop] == one.text
        assert hits == best > 3 * len(questions)
        assert rag.statistics.answered == len(questions)


def test_each_question_is_answered_once_while_contexts_are_killed(
    lab: System, device: Device
) -> None:
    with RagPipeline(lab, device, embed, size=80, overlap=20, max_batch=4) as rag:
        rag.add(corpus())
        expected = {n: rag.search(f"{TOPICS[n % 6]} {WORDS[n % 10]}") for n in range(16)}
        struck = list[int]()

        def send(number: int) -> Any:
            if number in (5, 9):
                lab.inject("kill").add_waiter(lambda: struck.append(number))
            return rag.ask(f"{TOPICS[number % 6]} {WORDS[number % 10]}")

        before = device.generation
        found = load(send, 16, threads=2)
        for number, one in found.items():  # another batch may round otherwise
            scores = [source.score for source in expected[number]]
            np.testing.assert_allclose([source.score for source in one.sources], scores, rtol=1e-5)
        assert device.generation > before
        assert struck
        assert adds_up(rag.statistics)


def test_an_answer_that_fails_fails_its_question_alone(lab: System, device: Device) -> None:
    def answer(question: str, sources: tuple[Any, ...]) -> str:
        if "bad" in question:
            raise ValueError(question)
        return str(sources[0].text)

    with RagPipeline(lab, device, embed, answer, max_wait_s=0.05) as rag:
        rag.add({"one": "whales are large", "two": "violins are bright"})
        good, bad = rag.ask("whales?"), rag.ask("bad violins?")
        assert good.result(60).answer == "whales are large"
        with pytest.raises(StageFailed, match="ValueError") as failed:
            bad.result(60)
        assert isinstance(failed.value.__cause__, ValueError)


def test_a_pipeline_refuses_what_does_not_fit(lab: System, device: Device) -> None:
    sizes = [3]

    def embedder(texts: list[str]) -> Any:
        return np.ones((len(texts), sizes[0]))

    with RagPipeline(lab, device, embedder) as rag:
        assert rag.ask("nothing yet").result(60).sources == ()
        rag.add({"one": "text"})
        sizes[0] = 4
        with pytest.raises(WrongAnswer):
            rag.add({"two": "more"})
        with pytest.raises(AccelError) as failed:
            rag.ask("new").result(60)
        assert isinstance(failed.value.__cause__, WrongAnswer)
        assert [one.document for one in rag.search("text")] == ["one"]
        with pytest.raises(InvalidArgument, match="another name"):
            rag.add({"one": "text"})
        with pytest.raises(InvalidArgument, match="str"):
            rag.add({"three": 3})  # type: ignore[dict-item]
        with pytest.raises(InvalidArgument, match="str"):
            rag.ask(3)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="str"):
            rag.stream(3).reply.result(60)
        sizes[0] = 3
        assert rag.add({"two": "more"}) == 1
    for options in ({"overlap": 9, "size": 9}, {"sources": 0}, {"lists": 0}, {"max_batch": 0}):
        with pytest.raises(InvalidArgument):
            RagPipeline(lab, device, embedder, **options)  # type: ignore[arg-type]
