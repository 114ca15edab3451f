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


def test_an_end_is_no_token(device: Device) -> None:
    (first,) = greedy(WEIGHTS, list(b"abc"), 1)
    tokenizer = Tokenizer.of_bytes()
    steps = Steps(TextModel(WEIGHTS, tokenizer, ends=[tokenizer.tokens[first]]), device)
    assert steps([Sequence(0, Generation(tuple(b"abc"), 6), 6)]) == [END]
