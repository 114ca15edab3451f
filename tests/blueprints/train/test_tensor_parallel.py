"""A trainer with weights cut among devices: one device's curve, whatever is lost."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.blueprints import train
from accel_lab.blueprints.train.exchange.meeting import Meeting
from accel_lab.blueprints.train.faults import Hearing
from accel_lab.errors import ContextLost, InvalidArgument
from accel_lab.world.world import World
from tests.blueprints.train.digits import Killing, batches, parameters, torch_curve

STEPS = 10
CUTS = {"w1": 0, "b1": 0, "w2": 1}


def loss(p: dict[str, train.Variable], images: Any, labels: Any) -> train.Variable:
    hidden = train.relu(train.column_linear(images, p["w1"], p["b1"]))
    logits = train.row_linear(hidden, p["w2"], p["b2"])
    return train.cross_entropy(logits.astype("float32"), labels)


def trainer(world: World, of_step: Any = None, **options: Any) -> train.TensorParallelTrainer:
    return train.TensorParallelTrainer(
        world,
        options.pop("loss", loss),
        parameters(),
        train.AdamW(0.01),
        of_step or batches(),
        **{"clip_norm": 1.0, "cuts": CUTS, **options},
    )


def alone(lab: System, **options: Any) -> train.Trainer:
    return train.Trainer(
        lab.devices[0],
        loss,
        parameters(),
        train.AdamW(0.01),
        batches(),
        **{"clip_norm": 1.0, **options},
    )


def test_it_learns_the_digits_as_a_plain_pytorch_script(
    undisturbed: tuple[list[float], dict[str, Any]],
) -> None:
    torch = pytest.importorskip("torch")
    theirs = torch_curve(torch, STEPS, lambda tensors: torch.optim.AdamW(tensors, lr=0.01), 1.0)
    np.testing.assert_allclose(undisturbed[0], theirs, rtol=1e-3)


def test_it_has_the_numbers_of_one_device(
    lab: System, undisturbed: tuple[list[float], dict[str, Any]]
) -> None:
    one, made = alone(lab), trainer(lab.world())
    np.testing.assert_allclose(made.run(STEPS), undisturbed[0], rtol=0)
    np.testing.assert_allclose(made.losses, one.run(STEPS), rtol=1e-5)
    np.testing.assert_allclose(made.norms, one.norms, rtol=1e-4)
    assert [state["w1"].shape for state in made.states] == [(8, 64)] * 3
    assert [state["w2:mean"].shape for state in made.states] == [(10, 8)] * 3
    np.testing.assert_array_equal(made.states[0]["b2"].get(), made.states[2]["b2"].get())


def test_outputs_that_are_gathered_have_the_same_gradients(lab: System) -> None:
    def gathering(p: dict[str, train.Variable], images: Any, labels: Any) -> train.Variable:
        hidden = train.relu(train.column_linear(images, p["w1"], p["b1"], gather=True))
        logits = train.linear(hidden, p["w2"], p["b2"])
        return train.cross_entropy(logits, labels)

    made = trainer(lab.world(), loss=gathering, cuts={"w1": 0, "b1": 0})
    np.testing.assert_allclose(made.run(4), alone(lab).run(4), rtol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_pytorchs(lab: System, *, causal: bool) -> None:
    """Of two blocks, whose weights have the same gradients on one device and on three."""
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(0)
    features, heads, places = 12, 6, 5
    names = [f"{kind}{block}" for block in (0, 1) for kind in ("q", "k", "v", "o")]
    given = {n: random.standard_normal((features, features)) / math.sqrt(features) for n in names}
    given["norm"] = random.standard_normal(features)
    x = random.standard_normal((3, places, features))
    target = random.standard_normal((3, places, features))

    def ours(p: dict[str, train.Variable], x: Any, target: Any) -> train.Variable:
        for block in (0, 1):
            weights = [p[f"{kind}{block}"] for kind in ("q", "k", "v", "o")]
            # The norm is whole on each rank: its gradient has to have what all heads say.
            seen = train.layer_norm(x, p["norm"])
            x = train.self_attention(seen, *weights, heads=heads, causal=causal) + x
        return train.mse(x, target)

    def theirs(p: dict[str, Any]) -> Any:
        at = torch.tensor(x)
        functional = torch.nn.functional
        for block in (0, 1):
            seen = functional.layer_norm(at, (features,), p["norm"])
            q, k, v = (
                functional.linear(seen, p[f"{kind}{block}"]).unflatten(-1, (heads, -1))
                for kind in ("q", "k", "v")
            )
            made = functional.scaled_dot_product_attention(
                q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=causal
            )
            at = functional.linear(made.transpose(1, 2).flatten(2), p[f"o{block}"]) + at
        return functional.mse_loss(at, torch.tensor(target))

    tensors = {name: torch.tensor(w, requires_grad=True) for name, w in given.items()}
    optimizer = torch.optim.SGD(list(tensors.values()), lr=0.5)
    wanted = []
    for _ in range(3):
        optimizer.zero_grad()
        lost = theirs(tensors)
        lost.backward()
        optimizer.step()
        wanted.append(lost.item())
    cuts = {name: 1 if name.startswith("o") else 0 for name in names}
    made = train.TensorParallelTrainer(
        lab.world(), ours, given, train.SGD(0.5), lambda _: (x, target), cuts=cuts
    )
    one = train.Trainer(lab.devices[0], ours, given, train.SGD(0.5), lambda _: (x, target))
    for trained in (made, one):
        np.testing.assert_allclose(trained.run(3), wanted, rtol=1e-10)
        for name, found in trained.parameters().items():
            np.testing.assert_allclose(found, tensors[name].detach().numpy(), rtol=1e-8, atol=1e-10)


def test_places_are_cut_between_layers_and_the_numbers_are_one_devices(lab: System) -> None:
    """The block of a transformer; each rank norms two of six places, and none has more between."""
    random = np.random.default_rng(1)
    n, wide = 12, 24
    shapes = {
        "q": (n, n),
        "k": (n, n),
        "v": (n, n),
        "o": (n, n),
        "up": (wide, n),
        "down": (n, wide),
    }
    given = {name: random.standard_normal(shape) / 4 for name, shape in shapes.items()}
    given |= {name: random.standard_normal(n) for name in ("norm1", "norm2", "down_bias")}
    given["up_bias"] = random.standard_normal(wide)
    x, target = random.standard_normal((2, 3, 6, n))
    seen: set[tuple[int, ...]] = set()

    def loss(p: dict[str, train.Variable], x: Any, target: Any, axis: int | None) -> train.Variable:
        x, shared = (
            (x, lambda one: one) if axis is None else (train.scattered(x, axis), train.copied)
        )
        normed = train.layer_norm(x, shared(p["norm1"]))
        weights = [p[name] for name in "qkvo"]
        x = x + train.self_attention(normed, *weights, heads=6, causal=True, sequence=axis)
        hidden = train.layer_norm(x, shared(p["norm2"]))
        hidden = train.gelu(train.column_linear(hidden, p["up"], p["up_bias"], sequence=axis))
        x = x + train.row_linear(hidden, p["down"], p["down_bias"], sequence=axis)
        seen.add(x.shape)
        return train.mse(x if axis is None else train.gathered(x, axis), target)

    cuts = {"q": 0, "k": 0, "v": 0, "o": 1, "up": 0, "up_bias": 0, "down": 1}
    made = train.TensorParallelTrainer(
        lab.world(), partial(loss, axis=1), given, train.SGD(0.2), lambda _: (x, target), cuts=cuts
    )
    made.run(3)
    assert seen == {(3, 2, n)}
    for axis in (1, None):
        part = partial(loss, axis=axis)
        one = train.Trainer(lab.devices[0], part, given, train.SGD(0.2), lambda _: (x, target))
        np.testing.assert_allclose(made.losses, one.run(3), rtol=1e-10)
        for name, found in one.parameters().items():
            np.testing.assert_allclose(made.parameters()[name], found, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("rank", [0, 1])
def test_after_a_rank_is_lost_the_curve_is_the_same_to_the_last_bit(
    lab: System, undisturbed: tuple[list[float], dict[str, Any]], rank: int
) -> None:
    killing = Killing(lab, rank, 1, 6)
    made = trainer(lab.world(), killing, every=4)
    assert made.run(STEPS) == undisturbed[0]
    for name, x in made.parameters().items():
        np.testing.assert_array_equal(x, undisturbed[1][name])
    assert made.faults
    for fault in killing.faults:
        with pytest.raises(ContextLost):
            fault.result()
    lab.check()


def test_a_checkpoint_goes_to_two_devices_and_to_one(
    lab: System, undisturbed: tuple[list[float], dict[str, Any]], tmp_path: Path
) -> None:
    trainer(lab.world(), snapshots=train.Checkpoints(tmp_path)).run(3)
    both = trainer(lab.world(lab.devices[:2]), snapshots=train.Checkpoints(tmp_path))
    assert both.resume() == 3
    both.run(6)
    last = alone(lab, snapshots=train.Checkpoints(tmp_path))
    assert last.resume() == 6
    np.testing.assert_allclose(last.run(STEPS), undisturbed[0], rtol=1e-4)


def test_a_mistake_on_one_rank_ends_the_others(lab: System) -> None:
    world = lab.world()
    x = [device.put(np.ones(3)) for device in world.devices]

    def other(rank: int) -> Any:
        if rank == 2:
            raise ZeroDivisionError
        return meeting.meet(rank, "all_reduce", x[rank])

    meeting: Meeting[Any] = Meeting(world, 3, Hearing(world.devices))
    with pytest.raises(ZeroDivisionError):
        meeting.run(other)

    def fewer(rank: int) -> Any:
        return meeting.meet(rank, "all_reduce", x[rank]) if rank else None

    meeting = Meeting(world, 3, Hearing(world.devices))
    with pytest.raises(InvalidArgument, match="rank 0 the end, rank 1 all_reduce, rank 2 all_red"):
        meeting.run(fewer)


def refused_attention(p: dict[str, train.Variable], images: Any, labels: Any) -> train.Variable:
    del labels
    return train.self_attention(images, *[p["w1"]] * 4, heads=4)


def uneven_places(p: dict[str, train.Variable], images: Any, labels: Any) -> train.Variable:
    del p, labels
    return train.scattered(images, 1)


def no_such_axis(p: dict[str, train.Variable], images: Any, labels: Any) -> train.Variable:
    del p, labels
    return train.gathered(images, 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cuts": {}}, "cuts is empty"),
        ({"cuts": {"w9": 0}}, "cuts names 'w9', and the parameters are ['w1'"),
        ({"cuts": {"w2": 0}}, "'w2' has the shape [10, 24]; it cannot be cut along axis 0 into 3"),
        ({"cuts": {"b1": 1}}, "cannot be cut along axis 1"),
        ({"loss": refused_attention}, "heads is 4, query"),
        ({"loss": uneven_places}, "scattered: axis is 1, and x is"),
        ({"loss": no_such_axis}, "gathered: axis is 2, and x is"),
        ({"loss": lambda *_: 3}, "loss is to return a variable"),
    ],
)
def test_a_mistake_is_refused_at_the_call(lab: System, options: Any, words: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        trainer(lab.world(), **options).run(1)
    assert words in str(caught.value)


def test_an_optimizer_of_whole_parameters_is_refused(lab: System) -> None:
    with pytest.raises(InvalidArgument, match="TensorParallelTrainer: Adafactor looks at whole"):
        train.TensorParallelTrainer(
            lab.world(), loss, parameters(), train.Adafactor(), batches(), cuts=CUTS
        )
