"""Asynchronous training: what a plain simulation of the same pushes computes, faults or not."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import System
from accel_lab.blueprints import train
from accel_lab.blueprints.train.parameter_server.staleness import may_push
from accel_lab.errors import ContextLost, InvalidArgument, OutOfBounds
from tests.blueprints.train.digits import batches, loss, parameters

PUSHES = 14


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", 3, max_restarts=1000, within_s=0.2) as opened:
        yield opened


def served(lab: System, of_batch: Any = None, **options: Any) -> train.AsyncParameterServer:
    server, *workers = lab.devices
    of_batch = of_batch or batches()
    optimizer = train.Adam(0.01)
    return train.AsyncParameterServer(
        server, workers, loss, parameters(), optimizer, of_batch, **options
    )


def simulated(torch: Any, pushes: list[Any], pack: Any = lambda g: g) -> list[float]:
    """Return the losses of these pushes one after the other, of PyTorch alone.

    A worker keeps what `pack` leaves out of its gradients, and adds it to the next one.
    """
    functional = torch.nn.functional
    p = {name: torch.tensor(x) for name, x in parameters().items()}
    optimizer = torch.optim.Adam(list(p.values()), lr=0.01)
    versions = [{name: x.clone() for name, x in p.items()}]
    left: dict[int, dict[str, Any]] = {}
    losses = []
    for push in pushes:
        old = {name: x.clone().requires_grad_() for name, x in versions[push.pulled].items()}
        images, labels = map(torch.tensor, batches()(push.batch))
        hidden = functional.linear(images, old["w1"], old["b1"]).relu()
        lost = functional.cross_entropy(functional.linear(hidden, old["w2"], old["b2"]), labels)
        lost.backward()
        kept = left.setdefault(push.worker, {})
        for name, x in p.items():
            whole = old[name].grad + kept.get(name, 0)
            x.grad = pack(whole)
            kept[name] = whole - x.grad
        optimizer.step()
        versions.append({name: x.clone() for name, x in p.items()})
        losses.append(lost.item())
    return losses


def require_sound(made: train.AsyncParameterServer) -> None:
    """Each batch was pushed once, and none was staler than the bound."""
    assert sorted(push.batch for push in made.pushes) == list(range(len(made.pushes)))
    assert [push.applied for push in made.pushes] == list(range(len(made.pushes)))
    assert max(push.staleness for push in made.pushes) <= made.staleness


@pytest.mark.parametrize("staleness", [1, 4])
def test_it_learns_as_a_plain_simulation_of_the_same_pushes(lab: System, staleness: int) -> None:
    torch = pytest.importorskip("torch")
    made = served(lab, staleness=staleness)
    losses = made.run(PUSHES)
    require_sound(made)
    assert {push.worker for push in made.pushes} == {0, 1}
    np.testing.assert_allclose(losses, simulated(torch, made.pushes), rtol=1e-4)
    assert losses[-1] < 0.8 * losses[0]


def top_k(g: Any) -> Any:
    """Return the larger tenth, by NumPy."""
    flat = np.asarray(g).reshape(-1)
    made = np.zeros_like(flat)
    places = np.argsort(-abs(flat), kind="stable")[: -(-flat.size // 10)]
    made[places] = flat[places]
    return g.new_tensor(made.reshape(g.shape))


def int8(g: Any) -> Any:
    scale = g.abs().max() / 127
    return (g / scale).round() * scale if scale else g


@pytest.mark.parametrize(
    ("compression", "pack", "times", "rtol"),
    [
        (train.TopK(0.1), top_k, 3.2, 1e-3),
        (train.Int8(), int8, 3.9, 1e-2),
        (train.Float16(), lambda g: g.half().float(), 1.99, 1e-3),
    ],
)
def test_what_is_left_out_goes_with_the_next_gradient(
    lab: System, compression: Any, pack: Any, times: float, rtol: float
) -> None:
    torch = pytest.importorskip("torch")
    made = served(lab, compression=compression)
    losses = made.run(PUSHES)
    require_sound(made)
    np.testing.assert_allclose(losses, simulated(torch, made.pushes, pack), rtol=rtol)
    whole = PUSHES * sum(x.nbytes for x in parameters().values())
    assert whole / made.sent_bytes > times


@pytest.mark.parametrize("device", [0, 1])
def test_it_heals_when_the_server_or_a_worker_is_killed(lab: System, device: int) -> None:
    torch = pytest.importorskip("torch")
    faults: list[Any] = []

    def killing(batch: int) -> Any:
        if batch == 8 and not faults:
            faults.append(lab.inject("kill", device))
        return batches()(batch)

    made = served(lab, killing)
    losses = made.run(PUSHES)
    faults[0].add_waiter(lambda: None)
    require_sound(made)
    np.testing.assert_allclose(losses, simulated(torch, made.pushes), rtol=1e-4)
    assert lab.devices[device].generation > 1


def test_a_server_that_rebuilds_nothing_goes_back_to_a_snapshot() -> None:
    torch = pytest.importorskip("torch")
    asked: list[int] = []
    with System("host", 2, recover="stale", max_restarts=1000, within_s=0.2) as lab:

        def killing(batch: int) -> Any:
            asked.append(batch)
            if batch == 7 and asked.count(7) == 1:
                lab.devices[0].replace()
            return batches()(batch)

        made = served(lab, killing, every=5)
        losses = made.run(PUSHES)
        assert set(made.parameters()) == set(parameters())
    require_sound(made)
    assert [asked.count(batch) for batch in (4, 5, 6)] == [1, 2, 2]
    np.testing.assert_allclose(losses, simulated(torch, made.pushes), rtol=1e-4)


def test_it_goes_on_where_it_was(lab: System) -> None:
    torch = pytest.importorskip("torch")
    made = served(lab)
    first = made.run(5)
    assert made.run(5) == first
    np.testing.assert_allclose(made.run(9), simulated(torch, made.pushes), rtol=1e-4)
    assert made.losses[:5] == first
    assert repr(made).startswith("AsyncParameterServer(9 pushes to cpu0, from cpu1, cpu2,")


@settings(max_examples=30)
@given(workers=st.integers(1, 6), more=st.integers(0, 4), data=st.data())
def test_no_push_is_staler_than_the_bound_and_none_waits_for_ever(
    workers: int, more: int, data: st.DataObject
) -> None:
    """Whoever comes when: somebody may push, and whoever may is in time."""
    bound = workers - 1 + more
    pulled = dict.fromkeys(range(workers), 0)
    for version in range(20):
        able = [
            one
            for one in pulled
            if may_push(version, [at for other, at in pulled.items() if other != one], bound)
        ]
        one = data.draw(st.sampled_from(able))
        assert version - pulled[one] <= bound
        pulled[one] = version + 1


def test_a_mistake_of_a_worker_is_raised_and_ends_all(lab: System) -> None:
    def wrong(batch: int) -> Any:
        images, labels = batches()(batch)
        return images, labels + (99 if batch == 3 else 0)

    with pytest.raises(OutOfBounds):
        served(lab, wrong).run(PUSHES)
    lab.check()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"staleness": 0}, "staleness is 0, and there are 2 workers"),
        ({"every": 0}, "every is 0"),
    ],
)
def test_what_does_not_fit_is_refused_at_the_call(lab: System, options: Any, words: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        served(lab, **options)
    assert words in str(caught.value)


def test_other_mistakes_are_refused_too(lab: System) -> None:
    server, *workers = lab.devices
    some = loss, parameters(), train.SGD(0.1), batches()
    with pytest.raises(InvalidArgument, match="there are no workers"):
        train.AsyncParameterServer(server, [], *some)
    with pytest.raises(InvalidArgument, match="there are no parameters"):
        train.AsyncParameterServer(server, workers, loss, {}, *some[2:])
    with pytest.raises(InvalidArgument, match="share is 0"):
        train.TopK(0)
    with pytest.raises(InvalidArgument, match="loss is to return a variable"):
        train.AsyncParameterServer(server, workers, lambda *_: 1.0, *some[1:]).run(1)  # type: ignore[arg-type]


def test_a_fault_amid_a_snapshot_costs_no_push_and_doubles_none(
    lab: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    made = served(lab, every=4)
    take, lost = made._take_snapshot, ContextLost("gone", generation=1)
    begun: list[int] = []

    def cut_short() -> None:
        begun.append(len(made.pushes))
        if len(begun) == 1:
            lab.inject("kill", 0).add_waiter(lambda: None)
            raise lost
        take()

    monkeypatch.setattr(made, "_take_snapshot", cut_short)
    losses = made.run(PUSHES)
    require_sound(made)
    np.testing.assert_allclose(losses, simulated(torch, made.pushes), rtol=1e-4)
    assert begun == [4, 8, 12]
    assert any("gone" in str(one) for one in made.faults)


def test_parameters_are_floats(lab: System) -> None:
    server, *workers = lab.devices
    with pytest.raises(
        InvalidArgument, match=r"parameter 'w' is int64\[3\]; it is to be of floats"
    ):
        train.AsyncParameterServer(
            server, workers, loss, {"w": np.arange(3)}, train.SGD(0.1), batches()
        )
