"""A character GPT on the sonnets: the curve of a plain PyTorch script, on any number of devices."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.blueprints import train
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from tests.benchmarks.torch_gpt import torch_logits

STEPS = 24
TEXT = train.Text(train.sonnets(), length=24, size=8, seed=3)
MODEL = train.GPT(len(TEXT.alphabet), length=24, width=16, heads=2, blocks=2)
PARAMETERS = MODEL.parameters(5)


@pytest.fixture(scope="module")
def theirs() -> list[float]:
    """Return the losses of the plain script."""
    torch = pytest.importorskip("torch")
    p = {name: torch.tensor(x, requires_grad=True) for name, x in PARAMETERS.items()}
    optimizer = torch.optim.AdamW(list(p.values()), lr=0.01)
    losses = []
    for step in range(STEPS):
        tokens, following = map(torch.tensor, TEXT(step))
        logits = torch_logits(torch, MODEL, p, tokens)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(p.values()), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", 2, max_restarts=100, within_s=0.2) as opened:
        yield opened


def trainer_on(world: Any, of_step: Any = TEXT) -> train.DataParallelTrainer:
    return train.DataParallelTrainer(
        world, MODEL.loss, PARAMETERS, train.AdamW(0.01), of_step, clip_norm=1.0
    )


def test_on_one_device_the_curve_is_that_of_a_plain_script(
    device: Device, theirs: list[float]
) -> None:
    alone = train.Trainer(device, MODEL.loss, PARAMETERS, train.AdamW(0.01), TEXT, clip_norm=1.0)
    ours = alone.run(STEPS)
    np.testing.assert_allclose(ours, theirs, rtol=0.01)
    assert ours[-1] < 0.85 * ours[0]  # it has learned something


def test_on_two_devices_with_a_kill_it_is_too(lab: System, theirs: list[float]) -> None:
    faults: list[Any] = []

    def killed(step: int) -> Any:
        if step == STEPS // 2 and not faults:
            faults.append(lab.inject("kill", lab.devices[1]))
        return TEXT(step)

    made = trainer_on(lab.world(), killed)
    np.testing.assert_allclose(made.run(STEPS), theirs, rtol=0.01)
    assert len(made.faults) == 1
    faults[0].add_waiter(lambda: None)


@pytest.mark.slow
def test_on_four_devices_it_is_too(theirs: list[float]) -> None:
    with System("host", 4) as four:
        np.testing.assert_allclose(trainer_on(four.world()).run(STEPS), theirs, rtol=0.01)


def test_no_place_sees_those_behind_it(lab: System) -> None:
    tokens, _ = TEXT(0)
    other = tokens.copy()
    other[:, 12:] = 0
    (device, _) = lab.devices
    p = {name: device.put(x) for name, x in PARAMETERS.items()}
    one, two = (MODEL.logits(p, device.put(x)).get() for x in (tokens, other))
    np.testing.assert_array_equal(one[:, :12], two[:, :12])
    assert not np.allclose(one[:, 12:], two[:, 12:])


def test_it_writes_characters_of_its_alphabet(lab: System) -> None:
    begun = TEXT.encode("Shall")
    written = MODEL.write(lab.devices[0], PARAMETERS, begun, 30, seed=1)
    assert len(TEXT.decode(written)) == 30
    assert written == MODEL.write(lab.devices[0], PARAMETERS, begun, 30, seed=1)
    assert MODEL.write(lab.devices[0], PARAMETERS, begun, 0) == []


def test_pieces_of_a_text_are_what_stands_there() -> None:
    tokens, following = TEXT(7)
    assert tokens.shape == following.shape == (8, 24)
    for row, next_ in zip(tokens, following, strict=True):
        piece = TEXT.decode(row) + TEXT.decode(next_)[-1]
        assert piece in train.sonnets()
        assert TEXT.decode(next_) == piece[1:]
    np.testing.assert_array_equal(TEXT(7)[0], tokens)
    assert not np.array_equal(TEXT(8)[0], tokens)
    starts = {TEXT(step)[0][0].tobytes() for step in range(50)}
    assert len(starts) > 40


def test_the_last_character_is_followed_too() -> None:
    """Of `ab` there is one piece of one: a, which b follows."""
    assert [int(one[0, 0]) for one in train.Text("ab", length=1, size=1)(0)] == [0, 1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda _: train.Text("ab", length=2, size=1), "length is 2, and the text has 2"),
        (lambda _: train.Text("ab", length=1, size=0), "size is 0"),
        (lambda _: TEXT.encode("a€"), "['€'] are not among"),
        (lambda _: train.GPT(5, width=6, heads=4).parameters(), "width is 6, and there are 4"),
        (lambda _: train.GPT(5, blocks=0).parameters(), "blocks is 0"),
        (lambda lab: MODEL.logits({}, lab.devices[0].put(np.zeros((1, 25), "i8"))), "at most 24"),
        (lambda lab: MODEL.write(lab.devices[0], {}, [], 1), "from one token at least"),
    ],
)
def test_a_mistake_is_refused_at_the_call(lab: System, call: Any, words: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call(lab)
    assert words in str(caught.value)
