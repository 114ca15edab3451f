"""Drafts change nothing of what a model says: against a transformer, and by chi-square."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from accel_lab import Device, System
from accel_lab.blueprints.patterns import PromptLookup, SpeculativeDecoder
from accel_lab.blueprints.patterns.speculative import Decoding, speculate
from accel_lab.errors import InvalidArgument, StageFailed
from accel_lab.testing import Faults
from tests.blueprints.patterns.load import adds_up, load

VOCABULARY, WIDTH, LAYERS = 12, 16, 3


def weights(seed: int = 0) -> dict[str, Any]:
    draw = np.random.default_rng(seed).standard_normal
    layers = [{name: draw((WIDTH, WIDTH)) / 4 for name in "qkvo"} for _ in range(LAYERS)]
    return {"embed": draw((VOCABULARY, WIDTH)), "place": draw((256, WIDTH)) / 2, "layers": layers}


class Transformer:
    """Causal attention with a cache of keys and values; its first layers are a model, too."""

    def __init__(self, given: dict[str, Any], layers: int = LAYERS) -> None:
        self.weights, self.layers = given, given["layers"][:layers]
        self.caches: list[list[Any]] = [[] for _ in self.layers]
        self.fed = self.calls = 0

    @property
    def length(self) -> int:
        return len(self.caches[0])

    def rewind(self, length: int) -> None:
        for cache in self.caches:
            del cache[length:]

    def forward(self, tokens: Sequence[int]) -> Any:
        self.calls += 1
        self.fed += len(tokens)
        rows = []
        for token in tokens:
            x = self.weights["embed"][token] + self.weights["place"][self.length]
            for layer, cache in zip(self.layers, self.caches, strict=True):
                cache.append((x @ layer["k"], x @ layer["v"]))
                keys, values = map(np.array, zip(*cache, strict=True))
                scores = np.exp(keys @ (x @ layer["q"]) / np.sqrt(WIDTH))
                x = x + np.tanh((scores / scores.sum()) @ values @ layer["o"])
            rows.append(x @ self.weights["embed"].T)
        return np.array(rows)


def alone(model: Transformer, prompt: list[int], count: int, end: int | None = None) -> list[int]:
    """Decode the most likely tokens one by one, without a cache that is ever rewound."""
    tokens = list(prompt)
    while len(tokens) - len(prompt) < count and (tokens == prompt or tokens[-1] != end):
        model.rewind(0)
        tokens.append(int(model.forward(tokens)[-1].argmax()))
    return tokens[len(prompt) :]


prompts = st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=10)


@settings(max_examples=25)
@given(
    prompt=prompts,
    limit=st.integers(1, 16),
    drafts=st.integers(0, 6),
    layers=st.sampled_from([0, 1, 2, LAYERS]),
    end=st.sampled_from([None, 3]),
    seed=st.integers(0, 3),
)
def test_the_most_likely_tokens_are_those_of_the_model_alone(
    prompt: list[int], limit: int, drafts: int, layers: int, end: int | None, seed: int
) -> None:
    given_ = weights(seed)
    model = Transformer(given_)
    draft: Any = Transformer(given_, layers) if layers else PromptLookup()
    one = Decoding(prompt, limit, 0.0, None, end)
    speculate(model, draft, drafts, one)
    assert one.parts == alone(Transformer(given_), prompt, limit, end)
    assert model.length == len(prompt) + len(one.parts) - 1 or one.parts[-1] == end
    assert one.passes == model.calls
    if layers == LAYERS and end is None:
        assert one.accepted == one.proposed, "the same model drafts what it would say"
        assert one.passes == -(-limit // (drafts + 1))


class Chain:
    """A model that looks at its last token alone."""

    def __init__(self, table: Any) -> None:
        self.table, self.tokens = table, list[int]()

    @property
    def length(self) -> int:
        return len(self.tokens)

    def forward(self, tokens: Sequence[int]) -> Any:
        self.tokens += tokens
        return self.table[list(tokens)]

    def rewind(self, length: int) -> None:
        del self.tokens[length:]


@pytest.mark.parametrize("temperature", [0.7, 1.5])
@pytest.mark.parametrize("drafted", ["lookup", "near", "far"])
def test_drawn_tokens_have_the_distribution_of_the_model_alone(
    drafted: str, temperature: float
) -> None:
    """All sequences of three tokens, against their probabilities; seeds are fixed."""
    rng = np.random.default_rng(11)
    table = rng.standard_normal((4, 4))
    other = {"near": table + rng.standard_normal((4, 4)) / 4, "far": -table}
    prompt, count = [0, 1, 2, 3, 1, 0, 1], 3_000
    shares = np.exp(table / temperature)
    shares /= shares.sum(axis=1, keepdims=True)
    found: Counter[tuple[int, ...]] = Counter()
    kept = 0
    for seed in range(count):
        one = Decoding(prompt, 3, temperature, seed, None)
        draft: Any = PromptLookup() if drafted == "lookup" else Chain(other[drafted])
        speculate(Chain(table), draft, 2, one)
        found[tuple(one.parts)] += 1
        kept += one.accepted
    expected = [
        count * shares[prompt[-1], a] * shares[a, b] * shares[b, c]
        for a, b, c in product(range(4), repeat=3)
    ]
    observed = [found[one] for one in product(range(4), repeat=3)]
    assert sum(observed) == count
    assert 0 < kept < 3 * count
    assert stats.chisquare(observed, expected).pvalue > 0.001


def test_lookup_drafts_what_followed_the_longest_match() -> None:
    assert PromptLookup().propose([1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3], 2) == [4, 9]
    assert PromptLookup(most=2).propose([1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3], 9) == [5, 1, 2, 3]
    assert PromptLookup().propose([1, 2, 3], 4) == []
    assert PromptLookup(most=3, least=3).propose([5, 5], 4) == []


def made(given_: dict[str, Any], layers: int = LAYERS) -> Callable[..., Transformer]:
    return lambda *_: Transformer(given_, layers)


def test_it_serves_streams_and_counts(lab: System) -> None:
    given_ = weights()
    with SpeculativeDecoder(
        lab, made(given_), made(given_, LAYERS), drafts=3, parallelism=2
    ) as decoder:
        stream = decoder.stream([1, 2], limit=8)
        assert list(stream) == alone(Transformer(given_), [1, 2], 8)
        assert decoder.ask([3], limit=4).result(30) == alone(Transformer(given_), [3], 4)
        found = decoder.statistics
        assert (found.more["acceptance"], found.more["tokens a pass"]) == (1.0, 4.0)
        again = [decoder.ask([4], limit=6, temperature=1, seed=5).result(30) for _ in range(2)]
        assert again[0] == again[1]
        assert len(again[0]) == 6
        node = next(one for one in lab.tree().walk() if one.name == "speculative")
        assert "drafts kept" in node.detail


def test_what_does_not_fit_is_refused(lab: System) -> None:
    class Odd(Transformer):
        def forward(self, tokens: Sequence[int]) -> Any:
            return super().forward(tokens)[0]

    with SpeculativeDecoder(lab, lambda: Odd(weights()), drafts=0) as decoder:
        with pytest.raises(StageFailed, match="logits of shape"):
            decoder.ask([1]).result(30)
        for wrong in ({"limit": 0}, {"temperature": -1}, {"timeout_s": 0}):
            with pytest.raises(InvalidArgument):
                decoder.ask([1], **wrong)
        with pytest.raises(InvalidArgument, match="empty"):
            decoder.ask([])
        assert adds_up(decoder.statistics)
    with pytest.raises(InvalidArgument, match="function"):
        SpeculativeDecoder(lab, 5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="least"):
        PromptLookup(0, 0)


def logits_of(table: Any, tokens: list[int]) -> Any:
    return table[tokens]


def test_each_request_is_whole_while_contexts_are_killed(lab: System) -> None:
    """The passes run on devices; a fault costs caches, and no token comes twice."""
    table = np.random.default_rng(2).standard_normal((VOCABULARY, VOCABULARY))
    faults = Faults({12: "kill", 25: "kill"})

    class Remote(Chain):
        def __init__(self, device: Device) -> None:
            super().__init__(table)
            self.device = device
            self.run = faults.into(lambda device, fed: device.run(logits_of, table, fed))

        def forward(self, tokens: Sequence[int]) -> Any:
            self.tokens += tokens
            found = self.run(self.device, list(tokens))
            return self.device.get(found).result()

    def walk(first: int, count: int) -> list[int]:
        tokens = [first]
        for _ in range(count):
            tokens.append(int(table[tokens[-1]].argmax()))
        return tokens[1:]

    with SpeculativeDecoder(lab, Remote, devices=lab, drafts=2, retries=5) as decoder:
        found = load(lambda n: decoder.ask([n % VOCABULARY], limit=5), 16)
        assert found == {n: walk(n % VOCABULARY, 5) for n in range(16)}
        assert decoder.statistics.reruns >= 2
    assert faults.struck == [12, 25]
    lab.check()
