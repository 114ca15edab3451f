"""A step gives several texts their next tokens, on every backend."""

from accel_lab import Device
from accel_lab.blueprints.language import Shape, Tokenizer, Weights
from accel_lab.blueprints.patterns import END, Sequence
from accel_lab.blueprints.serving import TextModel
from accel_lab.blueprints.serving.model import Generation
from accel_lab.blueprints.serving.steps import Steps
from tests.contract.language_reference import greedy

TINY = Shape(vocabulary=256, width=16, heads=4, shared=2, hidden=24, layers=2, context=64)
WEIGHTS = Weights.random(TINY, 3)


def test_texts_grow_side_by_side_and_begin_anew_without_their_memory(device: Device) -> None:
    prompts = [list(b"abc"), list(b"wxyz0"), list(b"q")]
    wanted = [greedy(WEIGHTS, prompt, 6) for prompt in prompts]
    steps = Steps(TextModel(WEIGHTS, Tokenizer.of_bytes()), device)
    texts = [Sequence(n, Generation(tuple(one), 6), 6) for n, one in enumerate(prompts)]
    for turn in range(6):
        if turn == 3:
            texts[1].memory.clear()
        for text, token in zip(texts, steps(texts), strict=True):
            text.parts.append(token)
    assert [text.parts for text in texts] == wanted


def test_texts_join_and_leave_and_the_caches_grow_when_they_are_too_small(device: Device) -> None:
    steps = Steps(TextModel(WEIGHTS, Tokenizer.of_bytes()), device)
    asked = {n: list(b"some text")[: n % 4 + 1] for n in range(7)}
    texts = {n: Sequence(n, Generation(tuple(one), 20), 20) for n, one in asked.items()}
    active: list[Sequence] = []
    made = []
    for turn in range(30):
        active = [one for one in active if len(one.parts) < 3 * (one.number + 1)]
        if turn < len(texts):
            active.append(texts[turn])
        if not active:
            break
        for text, token in zip(active, steps(active), strict=True):
            text.parts.append(token)
        assert steps._texts is not None
        assert set(steps._texts.lengths) == {one.number for one in active}
        made.append(steps._texts)
    assert {one.pages for one in made} == {2, 4, 8, 16}
    for number, text in texts.items():
        limit = 3 * (number + 1)
        assert text.parts == greedy(WEIGHTS, asked[number], limit), number


def test_a_drawn_text_is_the_same_alone_and_beside_a_greedy_one(device: Device) -> None:
    def drawn(*beside: Generation) -> list[int]:
        steps = Steps(TextModel(WEIGHTS, Tokenizer.of_bytes()), device)
        asked = [Generation(tuple(b"abc"), 8, temperature=2.0, top_p=0.9, seed=4), *beside]
        texts = [Sequence(n, one, 8) for n, one in enumerate(asked)]
        for _ in range(8):
            for text, token in zip(texts, steps(texts), strict=True):
                text.parts.append(token)
        if beside:
            assert texts[1].parts == greedy(WEIGHTS, list(b"xy"), 8)
        return texts[0].parts

    assert drawn() == drawn(Generation(tuple(b"xy"), 8)) != greedy(WEIGHTS, list(b"abc"), 8)


def test_an_end_is_no_token(device: Device) -> None:
    (first,) = greedy(WEIGHTS, list(b"abc"), 1)
    tokenizer = Tokenizer.of_bytes()
    steps = Steps(TextModel(WEIGHTS, tokenizer, ends=[tokenizer.tokens[first]]), device)
    assert steps([Sequence(0, Generation(tuple(b"abc"), 6), 6)]) == [END]
