"""Optimizers make PyTorch's numbers, step by step; Lion, which it has not, those of its paper."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from accel_lab.blueprints import train
from accel_lab.blueprints.train.optimizers.clipping import are_finite
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument

Array = npt.NDArray[Any]
STEPS = 12
SHAPES = {"w": (4, 3), "b": (3,), "filters": (2, 3, 2)}

OPTIMIZERS: dict[str, tuple[Callable[[], train.Optimizer], str, dict[str, Any]]] = {
    "sgd": (lambda: train.SGD(0.1), "SGD", {"lr": 0.1}),
    "momentum": (
        lambda: train.SGD(0.1, momentum=0.9, dampening=0.3, decay=0.01),
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01},
    ),
    "nesterov": (
        lambda: train.SGD(0.1, momentum=0.9, nesterov=True),
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    ),
    "adam": (lambda: train.Adam(0.01, decay=0.1), "Adam", {"lr": 0.01, "weight_decay": 0.1}),
    "adam, other betas": (
        lambda: train.Adam(0.01, betas=(0.8, 0.95), epsilon=1e-3),
        "Adam",
        {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-3},
    ),
    "adamw": (lambda: train.AdamW(0.01), "AdamW", {"lr": 0.01}),
    "adafactor": (lambda: train.Adafactor(0.05), "Adafactor", {"lr": 0.05}),
    "adafactor with decay": (
        lambda: train.Adafactor(0.5, decay=0.1, most=1.5, epsilons=(1e-6, 1e-2)),
        "Adafactor",
        {"lr": 0.5, "weight_decay": 0.1, "d": 1.5, "eps": (1e-6, 1e-2)},
    ),
}


def begin(dtype: str) -> tuple[dict[str, Array], list[dict[str, Array]]]:
    """Return parameters, and gradients for each step; some steps' are large, some small."""
    random = np.random.default_rng(2)

    def one(scale: float) -> dict[str, Array]:
        return {n: (random.standard_normal(s) * scale).astype(dtype) for n, s in SHAPES.items()}

    return one(1.0), [one(10.0 ** (step % 3 - 1)) for step in range(STEPS)]


@pytest.mark.parametrize("in_place", [False, True], ids=["anew", "in place"])
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-10), ("float32", 2e-5)])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_step_is_pytorchs(
    device: Device, name: str, dtype: str, rtol: float, *, in_place: bool
) -> None:
    torch = pytest.importorskip("torch")
    make, called, options = OPTIMIZERS[name]
    arrays, gradients = begin(dtype)
    optimizer = make()
    parameters = {key: device.put(x) for key, x in arrays.items()}
    slots = optimizer.begin(parameters)
    tensors = {key: torch.tensor(x, requires_grad=True) for key, x in arrays.items()}
    theirs = getattr(torch.optim, called)(list(tensors.values()), foreach=False, **options)
    ids = {key: ref.id for key, ref in parameters.items()}
    for number, given in enumerate(gradients, 1):
        out = {**parameters, **slots} if in_place else None
        refs = {key: device.put(g) for key, g in given.items()}
        parameters, slots = optimizer.step(number, parameters, refs, slots, out=out)
        for key, g in given.items():
            tensors[key].grad = torch.tensor(g)
        theirs.step()
        for key, tensor in tensors.items():
            got, want = np.asarray(parameters[key].get()), tensor.detach().numpy()
            assert str(got.dtype) == dtype
            np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol / 10, err_msg=f"{number}")
    assert in_place == (ids == {key: ref.id for key, ref in parameters.items()})


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_small_vectors_that_are_joined_take_the_step_of_each(device: Device, name: str) -> None:
    """In messages as few as one vector's, with the same bits."""
    rng = np.random.default_rng(5)
    sizes = {"a": (3,), "w": (2, 3), "b": (1,), "none": (0,), "c": (300,), "d": (4,)}
    dtypes = {key: "float64" if key == "d" else "float32" for key in sizes}
    arrays = {key: rng.standard_normal(s).astype(dtypes[key]) for key, s in sizes.items()}
    parameters = {key: device.put(x) for key, x in arrays.items()}
    optimizer = OPTIMIZERS[name][0]()
    slots = optimizer.begin(parameters)
    alone = {key: (parameters[key], optimizer.begin({key: parameters[key]})) for key in sizes}
    for number in range(1, 4):
        gradients = {key: device.put(x * number - 1) for key, x in arrays.items()}
        parameters, slots = optimizer.step(number, parameters, gradients, slots)
        assert list(parameters) == list(sizes)
        for key, (p, own) in alone.items():
            made, kept = optimizer.step(number, {key: p}, {key: gradients[key]}, own)
            alone[key] = made[key], kept
            for one, other in [(parameters[key], made[key]), *((slots[x], kept[x]) for x in kept)]:
                np.testing.assert_array_equal(one.get(), other.get(), err_msg=f"{key} {number}")


def test_lion_is_that_of_its_paper(device: Device) -> None:
    """Algorithm 2 of Chen et al., 2023, written out in NumPy."""
    arrays, gradients = begin("float64")
    optimizer = train.Lion(0.01, betas=(0.9, 0.98), decay=0.1)
    parameters = {key: device.put(x) for key, x in arrays.items()}
    slots = optimizer.begin(parameters)
    means = {key: np.zeros_like(x) for key, x in arrays.items()}
    for number, given in enumerate(gradients, 1):
        refs = {key: device.put(g) for key, g in given.items()}
        parameters, slots = optimizer.step(number, parameters, refs, slots)
        for key, g in given.items():
            update = np.sign(0.9 * means[key] + (1 - 0.9) * g)
            arrays[key] = arrays[key] - 0.01 * (update + 0.1 * arrays[key])
            means[key] = 0.98 * means[key] + (1 - 0.98) * g
            np.testing.assert_allclose(parameters[key].get(), arrays[key], rtol=1e-12)


def test_memory_stays_flat_where_steps_are_in_place(device: Device) -> None:
    arrays, gradients = begin("float32")
    optimizer = train.AdamW()
    parameters = {key: device.put(x) for key, x in arrays.items()}
    slots = optimizer.begin(parameters)
    held = {**parameters, **slots}
    refs = {key: device.put(g) for key, g in gradients[0].items()}
    for number in range(1, 20):
        parameters, slots = optimizer.step(number, parameters, refs, slots, out=held)
    assert {**parameters, **slots}.keys() == held.keys()
    for key, ref in {**parameters, **slots}.items():
        assert ref.id == held[key].id


SCHEDULES: dict[str, tuple[Callable[[int], float], Callable[[Any, Any], Any]]] = {
    "step decay": (
        train.StepDecay(0.5, 4, 0.3),
        lambda s, o: s.StepLR(o, 4, 0.3),
    ),
    "exponential": (train.Exponential(0.5, 0.9), lambda s, o: s.ExponentialLR(o, 0.9)),
    "linear": (
        train.Linear(0.5, 5, first=0.1, last=0.8),
        lambda s, o: s.LinearLR(o, 0.1, 0.8, 5),
    ),
    "cosine": (
        train.Cosine(0.5, STEPS, least=0.1),
        lambda s, o: s.CosineAnnealingLR(o, STEPS, 0.1),
    ),
    "in turn": (
        train.InTurn(train.Linear(0.5, 4, first=0.25), 4, train.Cosine(0.5, 8)),
        lambda s, o: s.SequentialLR(
            o, [s.LinearLR(o, 0.25, 1.0, 4), s.CosineAnnealingLR(o, 8)], [4]
        ),
    ),
}


@pytest.mark.filterwarnings("ignore")  # a scheduler of theirs warns of another of theirs
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_is_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    ours, make = SCHEDULES[name]
    theirs = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    scheduler = make(torch.optim.lr_scheduler, theirs)
    for step in range(STEPS):
        assert ours(step) == pytest.approx(theirs.param_groups[0]["lr"], rel=1e-9), step
        theirs.step()
        scheduler.step()


def test_a_schedule_is_followed(device: Device) -> None:
    optimizer = train.SGD(train.StepDecay(1.0, 1, 0.5))
    w = {"w": device.put(np.zeros(2))}
    ones = {"w": device.put(np.ones(2))}
    for number in (1, 2, 3):
        w, _ = optimizer.step(number, w, ones, {})
    np.testing.assert_array_equal(w["w"].get(), [-1.75, -1.75])


@pytest.mark.parametrize("most", [0.5, 100.0])
def test_clipping_is_pytorchs(device: Device, most: float) -> None:
    torch = pytest.importorskip("torch")
    _, (given, *_) = begin("float32")
    tensors = [torch.zeros(g.shape, requires_grad=True) for g in given.values()]
    for tensor, g in zip(tensors, given.values(), strict=True):
        tensor.grad = torch.tensor(g)
    theirs = torch.nn.utils.clip_grad_norm_(tensors, most)
    clipped, had = train.clip_by_norm({key: device.put(g) for key, g in given.items()}, most)
    np.testing.assert_allclose(had.get(), theirs.numpy(), rtol=1e-6)
    for ref, tensor in zip(clipped.values(), tensors, strict=True):
        np.testing.assert_allclose(ref.get(), tensor.grad.numpy(), rtol=1e-6)


def test_the_norm_of_halves_does_not_overflow(device: Device) -> None:
    g = {"w": device.put(np.full(4, 3e4, "float16"))}
    clipped, had = train.clip_by_norm(g, 1.0)
    assert had.get() == pytest.approx(6e4, rel=1e-3)
    assert clipped["w"].dtype == "float16"
    np.testing.assert_allclose(clipped["w"].get(), np.full(4, 0.5), rtol=2e-3)


def test_a_loss_scale_goes_as_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    w = torch.zeros(1, requires_grad=True)
    theirs = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=3)
    optimizer = torch.optim.SGD([w], lr=0.1)
    scale = train.LossScale(64.0, every=3)
    goes = itertools.cycle([True, True, True, True, False, True, False, False])
    for finite in itertools.islice(goes, 24):
        assert theirs.get_scale() == scale.scale
        optimizer.zero_grad()
        theirs.scale((w * (1.0 if finite else float("inf"))).sum()).backward()
        theirs.step(optimizer)
        theirs.update()
        scale = scale.after(finite=finite)


def test_a_loss_scale_stays_a_float32_that_divides() -> None:
    torch = pytest.importorskip("torch")
    for start, finite in ((2.0**100, True), (2.0**-100, False)):
        scale = train.LossScale(start, every=1)
        for _ in range(2000):
            scale = scale.after(finite=finite)
        both = torch.tensor([scale.scale, 1 / scale.scale], dtype=torch.float32)
        assert torch.isfinite(both).all()
        assert (both > 0).all()


def test_whether_all_is_finite_is_seen_in_every_gradient(device: Device) -> None:
    fine, other = device.put(np.ones(3)), device.put(np.array([1.0, np.nan]))
    assert bool(are_finite([fine, fine]).get())
    assert not bool(are_finite([fine, other]).get())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: train.SGD(-1.0), "SGD: rate is -1.0"),
        (lambda: train.SGD(0.1, nesterov=True), "nesterov needs a momentum"),
        (lambda: train.Adam(betas=(1.0, 0.9)), "betas[0] is 1.0; it is from 0 to below 1"),
        (lambda: train.Lion(decay=-1), "decay is -1"),
        (lambda: train.Adafactor(beta_decay=0.5), "-beta_decay is -0.5"),
        (lambda: train.Cosine(0.1, 0), "0 steps; it is an integer from 1"),
        (lambda: train.clip_by_norm({}, 0.0), "most is 0.0"),
        (lambda: train.clip_by_norm({}, 1.0), "there are no gradients"),
        (lambda: train.SGD(train.Exponential(-1.0, 0.9)).rate_at(2), "the rate of step 2 is -0.81"),
        (lambda: train.SGD(lambda _: float("nan")).rate_at(0), "the rate of step 0 is nan"),
    ],
)
def test_an_option_that_is_none_is_refused(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert words in str(caught.value)


def test_a_gradient_that_does_not_fit_is_refused_by_name(device: Device) -> None:
    w = {"w": device.put(np.ones((2, 3)))}
    with pytest.raises(InvalidArgument, match=r"the gradient of 'w' is missing"):
        train.SGD(0.1).step(1, w, {}, {})
    with pytest.raises(InvalidArgument, match=r"the gradient of 'w' is #"):
        train.SGD(0.1).step(1, w, {"w": device.put(np.ones(3))}, {})
    with pytest.raises(InvalidArgument, match=r"the gradient of 'w' is #.*float32"):
        train.SGD(0.1).step(1, w, {"w": device.put(np.ones((2, 3), "float32"))}, {})
    with pytest.raises(InvalidArgument, match="number is 0; it is an integer from 1"):
        train.Adam(0.1).step(0, w, w, train.Adam(0.1).begin(w))
    with pytest.raises(InvalidArgument, match=r"slot 'w:mean' is missing; begin\(\) makes"):
        train.Adam(0.1).step(1, w, w, {})
    with pytest.raises(InvalidArgument, match="names have no"):
        train.SGD(0.1).begin({"a:b": w["w"]})
