"""The contract of recurrent networks: PyTorch, packed sequences, finite differences, refusals."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, dnn
from accel_lab.compute.device import Device
from tests.contract.samples import LAYOUTS, assert_equal, place, reals, refused, seeds, value
from tests.contract.tolerances import EPS

CELLS = ("tanh", "relu", "gru", "lstm")
NETWORKS: tuple[dict[str, Any], ...] = (
    {},
    {"layers": 2, "bidirectional": True},
    {"layers": 3, "bias": False},
)
of_each_cell = pytest.mark.parametrize("cell", CELLS)
of_each_network = pytest.mark.parametrize("network", NETWORKS)
HIDDEN, FEATURES = 4, 3


def close(got: Any, expected: Any) -> None:
    expected = expected.detach().numpy() if hasattr(expected, "detach") else expected
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-11)


class Ours(NamedTuple):
    """A kind of network: its messages, and what they are told."""

    cell: str

    @property
    def name(self) -> str:
        return "rnn" if self.cell in ("tanh", "relu") else self.cell

    @property
    def states(self) -> int:
        return 2 if self.cell == "lstm" else 1

    def options(self, network: dict[str, Any]) -> dict[str, Any]:
        told = {"activation": self.cell} if self.name == "rnn" else {}
        return {**network, **told}

    def run(self, x: Any, weights: Any, states: Any = (), **options: Any) -> Any:
        given = dict(zip(("h0", "c0"), states, strict=False))
        function = getattr(dnn, self.name)
        return function(x, weights, HIDDEN, **given, **self.options(options))

    def back(self, x: Any, w: Any, made: Any, dy: Any, dstates: Any, states: Any, **o: Any) -> Any:
        given = dict(zip(("h0", "c0"), states, strict=False))
        given |= dict(zip(("dh", "dc"), dstates, strict=False))
        function = getattr(dnn, f"{self.name}_gradient")
        return function(x, w, made.reserve, HIDDEN, dy, **given, **self.options(o))


class Torchs:
    """PyTorch's network of random weights, and what comes to it."""

    def __init__(self, ours: Ours, network: dict[str, Any], batch: int) -> None:
        self.torch = torch = pytest.importorskip("torch")
        options = {"num_layers": network.get("layers", 1)}
        options |= {name: network[name] for name in ("bidirectional", "bias") if name in network}
        if ours.name == "rnn":
            options["nonlinearity"] = ours.cell
        kind = getattr(torch.nn, ours.name.upper())
        self.net = kind(FEATURES, HIDDEN, **options).double()
        each = options["num_layers"] * (1 + network.get("bidirectional", False))
        directions = 1 + network.get("bidirectional", False)
        for seed, parameter in enumerate(self.net.parameters()):
            drawn = reals(seed + 50, tuple(parameter.shape), "float64") * 0.6
            parameter.data.copy_(torch.tensor(drawn))
        drawn = [reals(20 + at, (each, batch, HIDDEN), "float64") for at in range(2 * ours.states)]
        self.states = [torch.tensor(one, requires_grad=True) for one in drawn[: ours.states]]
        self.dstates = [torch.tensor(one) for one in drawn[ours.states :]]
        self.features = HIDDEN * directions

    def weights(self) -> Any:
        return self.torch.nn.utils.parameters_to_vector(self.net.parameters()).detach().numpy()

    def gradient(self) -> Any:
        several = [one.grad for one in self.net.parameters()]
        return self.torch.nn.utils.parameters_to_vector(several).numpy()

    def run(self, x: Any) -> tuple[Any, tuple[Any, ...]]:
        y, last = self.net(x, tuple(self.states) if len(self.states) > 1 else self.states[0])
        return y, last if len(self.states) > 1 else (last,)


def numbers(several: Any) -> list[Any]:
    return [one.detach().numpy() for one in several]


@of_each_cell
@of_each_network
def test_a_network_and_its_gradients_are_pytorchs(
    device: Device, cell: str, network: dict[str, Any]
) -> None:
    ours, batch, time = Ours(cell), 3, 6
    theirs = Torchs(ours, network, batch)
    torch = theirs.torch
    x = torch.tensor(reals(1, (time, batch, FEATURES), "float64"), requires_grad=True)
    y, last = theirs.run(x)
    dy = torch.tensor(reals(2, tuple(y.shape), "float64"))
    torch.autograd.backward((y, *last), (dy, *theirs.dstates))
    at, weights, put_dy = (device.put(one) for one in (*numbers([x]), theirs.weights(), dy.numpy()))
    states = [device.put(one) for one in numbers(theirs.states)]
    dstates = [device.put(one) for one in numbers(theirs.dstates)]
    made = ours.run(at, weights, states, training=True, **network)
    for got, expected in zip(made, (y, *last), strict=False):
        close(value(device, got), expected)
    back = ours.back(at, weights, made, put_dy, dstates, states, **network)
    close(value(device, back.x), x.grad)
    close(value(device, back.weights), theirs.gradient())
    for got, expected in zip(back[2:], theirs.states, strict=True):
        close(value(device, got), expected.grad)
    calm = ours.run(at, weights, states, **network)
    assert calm.reserve is None
    assert_equal(value(device, calm.y), value(device, made.y))


@of_each_cell
def test_what_is_not_given_is_zero(device: Device, cell: str) -> None:
    ours, network = Ours(cell), {"layers": 2}
    theirs = Torchs(ours, network, 2)
    for state in theirs.states:
        state.data.zero_()
    x = theirs.torch.tensor(reals(1, (4, 2, FEATURES), "float64"), requires_grad=True)
    _, last = theirs.run(x)
    theirs.torch.autograd.backward(last[-1], theirs.dstates[-1])
    at, weights = device.put(x.detach().numpy()), device.put(theirs.weights())
    made = ours.run(at, weights, training=True, **network)
    close(value(device, made[ours.states]), last[-1])
    dstates: list[Any] = [None] * (ours.states - 1) + [device.put(theirs.dstates[-1].numpy())]
    back = ours.back(at, weights, made, None, dstates, (), **network)
    close(value(device, back.x), x.grad)
    close(value(device, back.weights), theirs.gradient())
    close(value(device, back.h0), theirs.states[0].grad)


@of_each_cell
@settings(max_examples=8)
@given(
    seed=seeds,
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    layout=st.sampled_from(["time_first", "batch_first", "packed"]),
    more=st.integers(0, 2),
)
def test_sequences_of_any_length_are_pytorchs(
    device: Device, cell: str, seed: int, lengths: list[int], layout: Any, more: int
) -> None:
    ours, network = Ours(cell), NETWORKS[1]
    theirs = Torchs(ours, network, len(lengths))
    torch, rnn = theirs.torch, theirs.torch.nn.utils.rnn
    if layout == "packed":
        lengths = sorted(lengths, reverse=True)
    batch_first, time = layout == "batch_first", max(lengths) + more
    drawn = reals(seed, (time, len(lengths), FEATURES), "float64")
    for one, n in enumerate(lengths):
        drawn[n:, one] = np.nan  # nobody may read it
    turned = drawn.swapaxes(0, 1) if batch_first else drawn
    leaf = torch.tensor(np.nan_to_num(turned, nan=9.0), requires_grad=True)
    pack = rnn.pack_padded_sequence(leaf, lengths, batch_first, enforce_sorted=False)
    x = np.ascontiguousarray(turned)
    if layout == "packed":
        x, pack = pack.data.detach().numpy(), pack._replace(data=pack.data.detach().clone())
        leaf = pack.data.requires_grad_()
    y, last = theirs.run(pack)
    y = y.data if layout == "packed" else rnn.pad_packed_sequence(y, batch_first, 0.0, time)[0]
    dy = torch.tensor(reals(seed + 1, tuple(y.shape), "float64"))
    torch.autograd.backward((y, *last), (dy, *theirs.dstates))
    options = {**network, "lengths": lengths, "layout": layout}
    at, weights = device.put(x), device.put(theirs.weights())
    states = [device.put(one) for one in numbers(theirs.states)]
    dstates = [device.put(one) for one in numbers(theirs.dstates)]
    dirty = ours.run(at, weights, states, training=True, **options).reserve
    dirty[...] = np.nan  # memory that the next one may be given
    value(device, dirty)
    del dirty
    made = ours.run(at, weights, states, training=True, **options)
    for got, expected in zip(made, (y, *last), strict=False):
        close(value(device, got), expected)
    back = ours.back(at, weights, made, device.put(dy.numpy()), dstates, states, **options)
    close(value(device, back.x), leaf.grad)
    close(value(device, back.weights), theirs.gradient())
    for got, expected in zip(back[2:], theirs.states, strict=True):
        close(value(device, got), expected.grad)


@of_each_cell
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_narrow_floats_are_rounded_once(device: Device, cell: str, dtype: str) -> None:
    ours, network = Ours(cell), NETWORKS[1]
    theirs = Torchs(ours, network, 3)
    torch, native = theirs.torch, reals(1, (), dtype).dtype
    narrow = [one.astype(native) for one in (reals(1, (5, 3, FEATURES), "float64"),)]
    narrow += [theirs.weights().astype(native), *(s.astype(native) for s in numbers(theirs.states))]
    x, weights, *states = narrow
    wide = torch.tensor(weights.astype("float64"))
    torch.nn.utils.vector_to_parameters(wide, theirs.net.parameters())
    theirs.states = [torch.tensor(one.astype("float64"), requires_grad=True) for one in states]
    leaf = torch.tensor(x.astype("float64"), requires_grad=True)
    y, _ = theirs.run(leaf)
    dy = reals(2, tuple(y.shape), dtype)
    y.backward(torch.tensor(dy.astype("float64")))
    at, flat, *first = [device.put(one) for one in (x, weights, *states)]
    made = ours.run(at, flat, first, training=True, **network)
    back = ours.back(at, flat, made, device.put(dy), (), first, **network)
    expected = [*numbers((y, leaf.grad, theirs.states[0].grad)), theirs.gradient()]
    for ref, exact in zip((made.y, back.x, back.h0, back.weights), expected, strict=True):
        got = value(device, ref)
        assert got.dtype == native
        # Half a unit of the dtype, and what float32 loses on the way, which is far less.
        bound = EPS[dtype] * np.abs(exact) * 0.51 + 64 * EPS["float32"] * np.abs(exact).max()
        assert np.all(np.abs(got.astype("float64") - exact) <= bound)


@of_each_cell
def test_finite_differences_are_the_gradients_also_with_dropout(device: Device, cell: str) -> None:
    ours = Ours(cell)
    network = {"layers": 3, "bidirectional": True, "dropout": 0.4, "seed": 3, "offset": 7}
    options: dict[str, Any] = {**network, "lengths": (2, 4, 3)}
    theirs = Torchs(ours, network, 3)
    at: list[Any] = [reals(1, (4, 3, FEATURES), "float64"), theirs.weights()]
    at += numbers(theirs.states)
    dy, *dstates = [reals(2, (4, 3, 2 * HIDDEN), "float64"), *numbers(theirs.dstates)]

    def results(several: list[Any]) -> Any:
        x, weights, *states = [device.put(one) for one in several]
        return ours.run(x, weights, states, training=True, **options)

    made = results(at)
    x, weights, *states = [device.put(one) for one in at]
    put = [device.put(one) for one in dstates]
    back = ours.back(x, weights, made, device.put(dy), put, states, **options)
    steps = [reals(seed + 9, one.shape, "float64") for seed, one in enumerate(at)]
    h = 1e-6
    up, down = (
        sum(
            (value(device, got) * d).sum()
            for got, d in zip(
                results([one + s * step for one, step in zip(at, steps, strict=True)]),
                (dy, *dstates),
                strict=False,
            )
        )
        for s in (h, -h)
    )
    slope = sum((value(device, d) * s).sum() for d, s in zip(back, steps, strict=True))
    np.testing.assert_allclose((up - down) / (2 * h), slope, rtol=2e-7)


def test_layers_are_dropped_out_between_as_dropout_does(device: Device) -> None:
    net = dnn.Weights("gru", FEATURES, HIDDEN, layers=3)
    weights = reals(1, (net.size,), "float64")
    names = {name: one.ravel() for name, one in net.split(weights).items()}
    x = device.put(reals(2, (5, 2, FEATURES), "float64"))
    options: dict[str, Any] = {"layers": 3, "dropout": 0.5, "seed": 11, "offset": 3}
    got = dnn.gru(x, device.put(weights), HIDDEN, training=True, **options)
    size = 5 * 2 * HIDDEN
    for layer in range(3):
        of = [one for name, one in names.items() if name.endswith(f"_l{layer}")]
        y = dnn.gru(x, device.put(np.concatenate(of)), HIDDEN).y
        x = dnn.dropout(y, 0.5, 11, offset=3 + layer * size)
    close(value(device, got.y), value(device, y))
    calm = dnn.gru(
        device.put(reals(2, (5, 2, FEATURES), "float64")), device.put(weights), HIDDEN, **options
    )
    whole = dnn.gru(
        device.put(reals(2, (5, 2, FEATURES), "float64")), device.put(weights), HIDDEN, layers=3
    )
    assert_equal(value(device, calm.y), value(device, whole.y))


@of_each_cell
@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_are_views(device: Device, cell: str, layout: Any) -> None:
    ours = Ours(cell)
    theirs = Torchs(ours, {}, 2)
    given = [reals(1, (3, 2, FEATURES), "float64"), theirs.weights(), *numbers(theirs.states)]
    x, w, *states = [device.put(one) for one in given]
    at, v, *others = [place(device, one, layout) for one in given]
    calm, made = ours.run(x, w, states, training=True), ours.run(at, v, others, training=True)
    dy = reals(3, (3, 2, HIDDEN), "float64")
    back = ours.back(x, w, calm, device.put(dy), (), states)
    again = ours.back(at, v, made, place(device, dy, layout), (), others)
    for got, expected in zip((*made, *again), (*calm, *back), strict=True):
        close(value(device, got), value(device, expected))


@of_each_cell
def test_names_and_places_of_weights_are_pytorchs(device: Device, cell: str) -> None:
    ours = Ours(cell)
    for network in NETWORKS:
        theirs = Torchs(ours, network, 1)
        net = dnn.Weights(ours.name, FEATURES, HIDDEN, **network)
        flat = theirs.weights()
        assert net.size == flat.size
        split = net.split(device.put(flat))
        expected = dict(theirs.net.named_parameters())
        assert [*split] == [*expected]
        for name, ref in split.items():
            assert_equal(value(device, ref), expected[name].detach().numpy())
    buffer = device.put(flat)
    net.split(buffer)["weight_hh_l1"][...] = 0
    theirs.net.weight_hh_l1.data.zero_()
    assert_equal(value(device, buffer), theirs.weights())


def test_no_sequence_makes_nothing_and_changes_nothing(device: Device) -> None:
    net = dnn.Weights("lstm", FEATURES, HIDDEN)
    weights = device.put(reals(1, (net.size,), "float32"))
    x = array.zeros(device, (5, 0, FEATURES))
    made = dnn.lstm(x, weights, HIDDEN, training=True)
    assert value(device, made.y).shape == (5, 0, HIDDEN)
    assert value(device, made.c).shape == (1, 0, HIDDEN)
    assert made.reserve is not None
    back = dnn.lstm_gradient(x, weights, made.reserve, HIDDEN, made.y)
    assert_equal(value(device, back.weights), np.zeros(net.size, "float32"))


def test_mistakes_are_refused_with_what_and_what_was_expected(device: Device) -> None:
    x, flat = array.zeros(device, (5, 2, 3)), array.zeros(device, (12, 3))
    net = dnn.Weights("lstm", 3, 4)
    weights, few = array.zeros(device, (net.size,)), array.zeros(device, (7,))
    state, other = array.zeros(device, (1, 2, 4)), array.zeros(device, (2, 2, 4))
    wide, dy = array.zeros(device, (1, 2, 4), "float64"), array.zeros(device, (5, 2, 4))
    reserve = array.zeros(device, (1, 6, 5, 2, 4))
    narrow = (array.zeros(device, n.shape, "float16") for n in (x, weights, reserve, state))
    a, b, c, d = narrow
    with refused(device, "weights is float32[7]", f"[{net.size}]"):
        dnn.lstm(x, few, 4)
    with refused(device, "h0 is float32[2, 2, 4]", "[1, 2, 4]"):
        dnn.lstm(x, weights, 4, other)
    with refused(device, "c0 is float64[1, 2, 4]", "one dtype"):
        dnn.lstm(x, weights, 4, state, c0=wide)
    with refused(device, "x is float32[12, 3]", "time, batch and features"):
        dnn.lstm(flat, weights, 4)
    with refused(device, "x is float32[12, 3]", "(6, 5)", "[11, 3]"):
        dnn.lstm(flat, weights, 4, lengths=(6, 5), layout="packed")
    with refused(device, "lengths are (6, 5)", "none more than there are"):
        dnn.lstm(x, weights, 4, lengths=(6, 5))
    with refused(device, "lengths are (0, 5)"):
        dnn.lstm(x, weights, 4, lengths=(0, 5))
    with refused(device, "x is float32[5, 2, 3]", "lengths (5, 5, 5)"):
        dnn.lstm(x, weights, 4, lengths=(5, 5, 5))
    with refused(device, "hidden is 0"):
        dnn.lstm(x, weights, 0)
    with refused(device, "layers is 0"):
        dnn.lstm(x, weights, 4, layers=0)
    with refused(device, "dropout is 1"):
        dnn.lstm(x, weights, 4, dropout=1)
    with refused(device, "layout is 'time_last'", "batch_first"):
        dnn.lstm(x, weights, 4, layout="time_last")  # type: ignore[arg-type]
    with refused(device, "activation is 'gelu'", "tanh, relu"):
        dnn.rnn(x, few, 4, activation="gelu")  # type: ignore[arg-type]
    with refused(device, "none is given"):
        dnn.lstm_gradient(x, weights, reserve, 4)
    with refused(device, "dy is float32[1, 2, 4]", "[5, 2, 4]"):
        dnn.lstm_gradient(x, weights, reserve, 4, state)
    with refused(device, "reserve is float32[5, 2, 4]", "[1, 6, 5, 2, 4]"):
        dnn.lstm_gradient(x, weights, dy, 4, dy)
    with refused(device, "reserve is float16", "float32"):
        dnn.lstm_gradient(a, b, c, 4, dh=d)
    with refused(device, f"has {net.size} weights", "[7]"):
        net.split(few)
