"""A language model of our messages generates what plain NumPy does, also through a kill."""

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.blueprints.language import (
    LanguageModel,
    Session,
    Shape,
    Texts,
    Tokenizer,
    Weights,
    smollm2,
)
from accel_lab.compute.actors.fault import Inject
from accel_lab.compute.device import Device
from accel_lab.errors import ContextLost, FileError, InvalidArgument
from tests.contract.language_reference import greedy, is_greedy, logits

TINY = Shape(vocabulary=101, width=48, heads=6, shared=2, hidden=80, layers=3, context=96)
PROMPT = [5, 17, 99, 0, 23, 42, 8]
LIMIT = 64
ASKED = "<|im_start|>user\nTell me about the sea.<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture(scope="module")
def weights() -> Weights:
    return Weights.random(TINY, 3)


@pytest.fixture(scope="module")
def real() -> tuple[Weights, Tokenizer]:
    try:
        return smollm2()
    except FileError as error:
        pytest.skip(str(error))


@pytest.fixture
def lab(backend: Any) -> Iterator[System]:
    with System(backend.__name__.rpartition(".")[2], devices=1, recover="replay") as system:
        yield system


def killed(device: Device) -> None:
    with pytest.raises(ContextLost):
        device.ask(Inject("kill")).result(60.0)


def test_the_greedy_text_is_that_of_numpy(device: Device, weights: Weights) -> None:
    session = Session(LanguageModel(device, weights), len(PROMPT) + LIMIT)
    made = list(session.generate(PROMPT, LIMIT))
    assert made == greedy(weights, PROMPT, LIMIT)
    assert len(set(made)) > 10  # one that repeats itself would prove little
    assert is_greedy(weights, PROMPT, made)
    assert not is_greedy(weights, PROMPT, [*made[:-1], (made[-1] + 1) % TINY.vocabulary])


@pytest.mark.parametrize("parts", [(7,), (3, 4), (1, 1, 5), (1,) * 7])
def test_logits_are_those_of_numpy_in_whatever_parts_a_prompt_comes(
    device: Device, weights: Weights, parts: tuple[int, ...]
) -> None:
    session = Session(LanguageModel(device, weights), 16)
    bounds = np.cumsum([0, *parts])
    found = [session.append(PROMPT[begin:end]) for begin, end in pairwise(bounds)]
    wanted = logits(weights, PROMPT)[bounds[1:] - 1]
    for made, one in zip(found, wanted, strict=True):
        np.testing.assert_allclose(made.get(), one, rtol=2e-4, atol=2e-4)
    assert session.length == len(PROMPT)


def test_texts_of_any_lengths_grow_side_by_side_and_make_room_for_others(
    device: Device, weights: Weights
) -> None:
    texts = Texts(LanguageModel(device, weights), 6)  # of 16 tokens each
    asked = {4: PROMPT, 0: PROMPT[:2], 9: [3] * 17}
    rows = [texts.append([number], [tokens]) for number, tokens in asked.items()]
    found = dict(zip(asked, np.concatenate([row.get() for row in rows]), strict=True))
    for turn in range(3):
        order = [9, 0, 4] if turn else [0, 4, 9]
        for number in order:
            wanted = logits(weights, asked[number])[-1]
            np.testing.assert_allclose(found[number], wanted, rtol=2e-4, atol=2e-4)
        added = [[7 * turn + number] for number in order]
        found = dict(zip(order, texts.append(order, added).get(), strict=True))
        asked |= {n: [*asked[n], *one] for n, one in zip(order, added, strict=True)}
    assert texts.lengths == {number: len(tokens) for number, tokens in asked.items()}
    texts.end([9, 0, 77])
    again = texts.append([9], [[*PROMPT, *PROMPT]]).get()  # the number of one that has ended
    np.testing.assert_allclose(again[0], logits(weights, PROMPT * 2)[-1], rtol=2e-4, atol=2e-4)
    assert {cache.statistics().sequences for cache in texts.caches} == {2}
    texts.free()


def test_what_does_not_fit_beside_other_texts_is_refused(device: Device, weights: Weights) -> None:
    texts = Texts(LanguageModel(device, weights), 3)
    texts.append([1], [[3] * 30])
    refused: list[tuple[list[int], list[list[int]], str]] = [
        ([2], [[3] * 17], "47 tokens take 4 pages of 16; there are 3"),
        ([2, 1], [[3], [3, 4]], r"2 lists of tokens, of \[1, 2\] each, for texts \[2, 1\]"),
        ([2, 2], [[3], [4]], "one list for each text"),
        ([2], [], "0 lists of tokens"),
        ([2], [[]], "0 tokens after 0; at least 1"),
        ([2, 1], [[3], [101]], "101 is no token"),
        ([1], [[3] * 67], "67 tokens after 30; .* 96 at most"),
    ]
    for numbers, tokens, text in refused:
        with pytest.raises(InvalidArgument, match=text):
            texts.append(numbers, tokens)
    assert texts.lengths == {1: 30}
    assert texts.append([2], [PROMPT]).get().shape == (1, TINY.vocabulary)
    texts.free()


def test_a_sentence_goes_on_when_the_device_is_lost_in_its_middle(
    lab: System, weights: Weights
) -> None:
    (device,) = lab.devices
    model = LanguageModel(device, weights)
    whole = list(Session(model, 64).generate(PROMPT, 40))
    sentence = Session(model, 64).generate(PROMPT, 40)
    begun = list(islice(sentence, 11))
    killed(device)
    assert begun + list(sentence) == whole
    assert device.generation == 2


def test_after_a_checkpoint_a_session_goes_on_with_what_was_kept(
    lab: System, weights: Weights
) -> None:
    (device,) = lab.devices
    session = Session(LanguageModel(device, weights), 64)
    sentence = session.generate(PROMPT, 20)
    begun = list(islice(sentence, 9))
    session.checkpoint()
    assert {cache.handle.durability for cache in session.caches} == {"checkpointed"}
    killed(device)
    assert begun + list(sentence) == greedy(weights, PROMPT, 20)


def test_what_does_not_fit_is_refused_at_the_call(device: Device, weights: Weights) -> None:
    model = LanguageModel(device, weights)
    for tokens in (0, TINY.context + 1):
        with pytest.raises(InvalidArgument, match=f"of {tokens} tokens; the model takes 1 to 96"):
            Session(model, tokens)
    session = Session(model, 8)
    session.append(PROMPT)
    with pytest.raises(InvalidArgument, match=r"2 tokens after 7; .* 8 at most"):
        session.append([1, 2])
    with pytest.raises(InvalidArgument, match="0 tokens after 7; at least 1"):
        session.append([])
    for token in (-1, TINY.vocabulary):
        with pytest.raises(InvalidArgument, match=f"{token} is no token; .* from 0 to 100"):
            session.append([token])
    assert session.length == len(PROMPT)
    assert session.append([1]).get().shape == (TINY.vocabulary,)  # nothing of it has spoilt a cache
    session.free()


def test_weights_that_do_not_fit_are_refused(device: Device, weights: Weights) -> None:
    layers = weights.layers
    wrong = layers[1]._replace(down=layers[1].up)
    for other, text in [
        (weights._replace(layers=layers[:1]), "are of 1 layers, not of 3"),
        (
            weights._replace(layers=(layers[0], wrong, layers[2])),
            r"down of layer 1 is float32 \(80, 48\); float32 \(48, 80\) is wanted",
        ),
        (weights._replace(norm=weights.norm.astype("float64")), "norm is float64"),
        (weights._replace(shape=TINY._replace(shared=4)), "heads 6, shared 4"),
    ]:
        with pytest.raises(InvalidArgument, match=text):
            LanguageModel(device, other)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_smollm2_writes_what_numpy_would(device: Device, real: tuple[Weights, Tokenizer]) -> None:
    weights, tokenizer = real
    prompt = tokenizer.encode(ASKED, special=True)
    session = Session(LanguageModel(device, weights), len(prompt) + LIMIT)
    made = list(session.generate(prompt, LIMIT))
    assert is_greedy(weights, prompt, made)
    text = tokenizer.decode(made)
    assert "ocean" in text or "sea" in text
    assert "\N{REPLACEMENT CHARACTER}" not in text


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_smollm2_goes_on_when_its_device_is_lost(
    lab: System, real: tuple[Weights, Tokenizer]
) -> None:
    weights, tokenizer = real
    (device,) = lab.devices
    prompt = tokenizer.encode(ASKED, special=True)
    session = Session(LanguageModel(device, weights), 128)
    sentence = session.generate(prompt, 24)
    begun = list(islice(sentence, 8))
    session.checkpoint()
    killed(device)
    assert is_greedy(weights, prompt, begun + list(sentence))
    assert device.generation == 2
