"""Reductions are NumPy's in float64, of one array and of many that came one by one."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import Device, System
from accel_lab.blueprints.realtime import (
    Accumulate,
    Forget,
    Reduce,
    ReductionAnalysisActor,
    Totals,
)
from accel_lab.blueprints.realtime.analysis import reduction_analysis
from accel_lab.errors import ContextLost, InvalidArgument

EPS = float(np.finfo(float).eps)


@pytest.fixture(scope="module")
def reducing(spawn: Any, device: Device) -> Any:
    return spawn(lambda: ReductionAnalysisActor(device))


def truth(x: Any, ddof: int = 0) -> dict[str, Any]:
    """Reduce an array (n, channels) in float64; sums are rounded once."""
    x = np.asarray(x, float)
    return {
        "count": len(x),
        "nans": 0,
        "argmin": x.argmin(0),
        "argmax": x.argmax(0),
        "sum": [math.fsum(one) for one in x.T],
        "mean": [math.fsum(one) / len(x) for one in x.T],
        "variance": x.var(0, ddof=ddof),
        "std": x.std(0, ddof=ddof),
        "min": x.min(0),
        "max": x.max(0),
        "norm1": [math.fsum(abs(one)) for one in x.T],
        "norm2": np.linalg.norm(x, axis=0),
        "norm_max": abs(x).max(0),
    }


def is_as(found: Any, wanted: dict[str, Any], rtol: float = 1e-12) -> None:
    for name, want in wanted.items():
        got = getattr(found, name)
        if name in {"count", "nans", "argmin", "argmax", "min", "max"}:
            np.testing.assert_array_equal(got, np.squeeze(want), name)
        else:
            np.testing.assert_allclose(got, np.squeeze(want), rtol=rtol, err_msg=name)


@settings(max_examples=15)
@given(
    n=st.sampled_from((1, 2, 31, 33, 8191, 8193, 40_000)),
    seed=st.integers(0, 99),
    kind=st.sampled_from(("float32", "float64", "uint8")),
)
def test_they_are_numpys(reducing: Any, device: Device, n: int, seed: int, kind: str) -> None:
    x = (np.random.default_rng(seed).normal(100, 50, n)).clip(0, 255).astype(kind)
    is_as(reducing.ask(Reduce(device.put(x))).result().get(), truth(x[:, None]))


@pytest.mark.parametrize("channels", [1, 3, 4096])
def test_channels_are_reduced_by_themselves(spawn: Any, device: Device, channels: int) -> None:
    by_channel = spawn(lambda: ReductionAnalysisActor(device, by_channel=True, ddof=1))
    x = np.random.default_rng(channels).normal(1, 2, (7, 11, channels)).astype("float32")
    found = by_channel.ask(Reduce(device.put(x))).result()
    assert found.numbers.shape == (9, channels)
    got = {name: np.squeeze(one) for name, one in found.get()._asdict().items()}
    is_as(type(found.get())(**got), truth(x.reshape(77, channels), ddof=1))


def test_numbers_that_cancel_and_numbers_far_from_zero_lose_nothing(
    reducing: Any, device: Device
) -> None:
    """A plain sum loses all, a sum of squares less the square of the sum has no variance left."""
    rng = np.random.default_rng(3)
    x = rng.normal(0, 1, 50_000) * 10.0 ** rng.integers(-8, 9, 50_000)
    x = rng.permutation(np.concatenate([x, -x[:-1]]))
    exact = float(sum(map(Fraction, x.tolist())))
    found = reducing.ask(Reduce(device.put(x))).result().get()
    bound = EPS * abs(exact) + EPS**2 * len(x) * abs(x).sum()
    assert abs(found.sum - exact) <= bound < abs(exact) * 1e-6
    far = 1e9 + rng.normal(0, 1, 100_000)
    found = reducing.ask(Reduce(device.put(far))).result().get()
    want = (far - 1e9).var()  # 1e9 is taken away without rounding
    assert found.variance == pytest.approx(want, rel=256 * EPS * 1e9)


def test_nan_spoils_what_it_touches_unless_it_is_skipped(
    reducing: Any, spawn: Any, device: Device
) -> None:
    x = np.random.default_rng(0).random(10_000)
    x[[77, 5000]] = np.nan
    skipping = spawn(lambda: ReductionAnalysisActor(device, skip_nan=True))
    on = device.put(x)
    found = reducing.ask(Reduce(on)).result().get()
    assert (found.count, found.nans, found.argmin, found.argmax) == (9998, 2, 77, 77)
    assert all(np.isnan(one) for one in found[4:])
    found = skipping.ask(Reduce(on)).result().get()
    assert (found.count, found.nans) == (9998, 2)
    assert (found.argmin, found.argmax) == (np.nanargmin(x), np.nanargmax(x))
    np.testing.assert_allclose(
        [found.sum, found.mean, found.variance, found.min, found.max],
        [np.nansum(x), np.nanmean(x), np.nanvar(x), np.nanmin(x), np.nanmax(x)],
        rtol=1e-13,
    )
    none = skipping.ask(Reduce(device.put(np.full(3, np.nan)))).result().get()
    assert (none.count, none.nans, none.argmin, none.argmax) == (0, 3, -1, -1)
    assert np.isnan(none.sum)


def test_infinities_are_numpys_and_of_equals_the_first_is_told(
    reducing: Any, device: Device
) -> None:
    x = np.array([3.0, np.inf, 1.0, 1.0, np.inf])
    found = reducing.ask(Reduce(device.put(x))).result().get()
    assert (found.sum, found.mean, found.norm1, found.norm2) == (np.inf,) * 4
    assert (found.argmin, found.argmax, found.min) == (2, 1, 1.0)
    assert np.isnan(found.variance)
    both = reducing.ask(Reduce(device.put(np.array([np.inf, -np.inf])))).result().get()
    assert np.isnan(both.sum)
    assert both.norm1 == np.inf


@settings(max_examples=8)
@given(cuts=st.lists(st.integers(1, 999), max_size=4, unique=True), seed=st.integers(0, 9))
def test_totals_are_those_of_all_arrays_as_one(
    reducing: Any, device: Device, cuts: list[int], seed: int
) -> None:
    x = np.random.default_rng(seed).integers(-50, 50, 1000).astype("float32")
    reducing.ask(Forget()).result()
    for part in np.split(x, sorted(cuts)):
        reducing.ask(Accumulate(device.put(part))).result()
    is_as(reducing.ask(Totals()).result().get(), truth(x[:, None]))


def test_one_of_them_is_a_buffer_without_waiting(reducing: Any, device: Device) -> None:
    found = reducing.ask(Reduce(device.put(np.arange(5.0)))).result()
    assert found.on_device("mean").get() == 2
    assert found.on_device("argmax").get() == 4
    with pytest.raises(InvalidArgument, match=r"one of count, nans, .* not 'median'"):
        found.on_device("median")


def test_a_card_has_the_bits_of_the_host(backend: str, reducing: Any, device: Device) -> None:
    if backend == "host":
        pytest.skip("compares a card with the host")
    x = np.random.default_rng(8).normal(10, 3, 300_000).astype("float32")
    found = reducing.ask(Reduce(device.put(x))).result().get()
    with System("host", devices=1) as lab:
        (host,) = lab.devices
        actor = lab.spawn(lambda: ReductionAnalysisActor(host))
        assert found == actor.ask(Reduce(host.put(x))).result().get()


def test_totals_survive_a_kill(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduction_analysis, "KEEP_EVERY", 3)
    with System(backend, devices=1) as lab:
        (device,) = lab.devices
        parts = np.random.default_rng(1).random((10, 300))

        def run(*, killed: bool) -> Any:
            actor = lab.spawn(lambda: ReductionAnalysisActor(device))
            for i, part in enumerate(parts):
                going = actor.ask(Accumulate(device.put(part)))
                if killed and i in {4, 7}:
                    with pytest.raises(ContextLost):
                        lab.inject("kill").result()
                going.result()
            return actor.ask(Totals()).result().get()

        assert run(killed=True) == run(killed=False)
        assert device.generation == 3
        lab.check()


def test_mistakes_are_refused_and_the_totals_stay(spawn: Any, device: Device) -> None:
    actor = spawn(lambda: ReductionAnalysisActor(device, by_channel=True))
    with pytest.raises(InvalidArgument, match="nothing is accumulated yet"):
        actor.ask(Totals()).result()
    actor.ask(Accumulate(device.put(np.ones((4, 3))))).result()
    for message, text in (
        (Accumulate(device.put(np.ones((4, 2)))), "must have 3 channels, as those before, not 2"),
        (Reduce(device.put(np.ones((0, 3)))), r"values must have elements, not float64\[0, 3\]"),
        (Reduce(device.put(np.ones(3, "int64"))), r"float32 or float64 or .* not int64\[3\]"),
        (Reduce(np.ones(3)), "not ndarray"),  # type: ignore[arg-type]
        (Reduce(device.put(np.ones(5000, "uint8"))), "at most 4096 channels .* not 5000"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            actor.ask(message).result()
    assert actor.ask(Totals()).result().get().sum.tolist() == [4, 4, 4]
    with pytest.raises(InvalidArgument, match="ddof must be an int from 0"):
        ReductionAnalysisActor(device, ddof=-1)
