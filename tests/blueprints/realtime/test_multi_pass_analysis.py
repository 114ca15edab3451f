"""Passes over one array find what NumPy finds, each in what the one before left."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import Device, System
from accel_lab.blueprints.realtime import (
    Analyse,
    Histogram,
    Load,
    Map,
    MultiPassAnalysisActor,
    Normalise,
    Outliers,
    Pass,
    Quantiles,
    SetPasses,
    Statistics,
)
from accel_lab.errors import CompileError, ContextLost, DependencyFailed, InvalidArgument


@pytest.fixture(scope="module")
def analysed(spawn: Any, device: Device) -> Any:
    """Analyse a float64 array by one actor: the values left, and what was found."""
    actor = spawn(lambda: MultiPassAnalysisActor(device, dtype="float64"))

    def analyses(x: Any, **passes: Any) -> tuple[Any, dict[str, Any]]:
        actor.ask(SetPasses(passes)).result()
        actor.ask(Load(device.put(x))).result()
        done = actor.ask(Analyse()).result()
        return done.values.get(), done.found

    return analyses


def of(seed: int, n: int) -> Any:
    """Numbers some of which are equal, and some NaN."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(3, 2, n), rng.integers(0, 9, n // 2), np.full(n // 9, np.nan)])
    return rng.permutation(x)


@settings(max_examples=8)
@given(n=st.integers(1, 5000), seed=st.integers(0, 99), bins=st.integers(1, 300))
def test_histograms_and_quantiles_are_numpys(analysed: Any, n: int, seed: int, bins: int) -> None:
    x, at = of(seed, n), (0.0, 0.013, 0.5, 0.987, 1.0)
    _, found = analysed(x, own=Histogram(bins), given=Histogram(bins, 1.0, 4.0), at=Quantiles(at))
    there = x[~np.isnan(x)]
    for name, ends in (("own", None), ("given", (1.0, 4.0))):
        counts, edges = np.histogram(there, bins, ends)
        np.testing.assert_array_equal(found[name].edges.get(), edges)
        np.testing.assert_array_equal(found[name].counts.get(), counts)
    np.testing.assert_array_equal(found["at"].get(), np.quantile(there, at))


@pytest.mark.parametrize("bins", [3, 7, 49])
def test_what_is_beside_an_edge_is_in_the_bin_that_numpy_has(analysed: Any, bins: int) -> None:
    edges = np.linspace(0.1, 0.7, bins + 1)
    x = np.concatenate([edges, np.nextafter(edges, 1), np.nextafter(edges, 0)[1:]])
    _, found = analysed(x, bins=Histogram(bins, 0.1, 0.7))
    np.testing.assert_array_equal(found["bins"].counts.get(), np.histogram(x, bins, (0.1, 0.7))[0])


def test_histograms_of_one_value_and_of_none_have_bins(analysed: Any) -> None:
    for x in (np.full(5, 7.0), np.full(4, np.nan)):
        _, found = analysed(x, bins=Histogram(4), at=Quantiles((0.5,)), before=Statistics())
        there = x[~np.isnan(x)]
        counts, edges = np.histogram(there, 4)
        np.testing.assert_array_equal(found["bins"].edges.get(), edges)
        np.testing.assert_array_equal(found["bins"].counts.get(), counts)
        assert found["before"].get().count == len(there)
        np.testing.assert_array_equal(found["at"].get(), [7.0] if len(there) else [np.nan])


def test_infinities_are_counted_between_given_ends_alone(analysed: Any) -> None:
    x = np.array([-np.inf, 0.5, 1.5, np.inf, 1.0])
    _, found = analysed(x, own=Histogram(3), given=Histogram(2, 0.0, 2.0))
    assert found["own"].counts.get().tolist() == [0, 0, 0]
    assert found["given"].counts.get().tolist() == [1, 2]


def test_what_is_normalised_has_mean_0_and_spread_1_or_fills_its_range(analysed: Any) -> None:
    x = of(1, 2000).reshape(-1, 2)
    left, found = analysed(x, scaled=Normalise(), after=Statistics())
    assert left.shape == x.shape
    np.testing.assert_allclose(left, (x - np.nanmean(x)) / np.nanstd(x), rtol=1e-12, atol=1e-14)
    assert found["scaled"].get().mean == pytest.approx(np.nanmean(x), rel=1e-14)
    after = found["after"].get()
    assert abs(after.mean) < 1e-14
    assert after.std == pytest.approx(1, rel=1e-13)
    left, found = analysed(x, scaled=Normalise("range"), after=Statistics())
    assert found["after"].get()[8:10] == (0, 1)
    np.testing.assert_array_equal(np.isnan(left), np.isnan(x))
    left, _ = analysed(np.full(5, 3.0), scaled=Normalise())
    assert left.tolist() == [0] * 5


@pytest.mark.parametrize("by", ["quartiles", "spread"])
def test_outliers_are_their_definition_and_passes_see_what_is_left(analysed: Any, by: Any) -> None:
    x = np.concatenate([of(2, 900), np.full(7, -40.0), np.full(6, 50.0)])
    if by == "quartiles":
        low, high = np.nanquantile(x, (0.25, 0.75))
        reach = 1.5 * (high - low)
    else:
        low = high = np.nanmean(x)
        reach = 1.5 * np.nanstd(x)
    low, high = low - reach, high + reach
    outside = np.flatnonzero((x < low) | (x > high))
    assert len(outside) >= 13
    several: tuple[tuple[Any, Any], ...] = (
        ("keep", x),
        ("clip", x.clip(low, high)),
        ("leave out", np.where((x < low) | (x > high), np.nan, x)),
    )
    for then, left in several:
        got, found = analysed(x, out=Outliers(by, 1.5, then), after=Statistics())
        np.testing.assert_array_equal(found["out"].places.get(), outside)
        np.testing.assert_allclose(found["out"].fences.get(), [low, high], rtol=1e-13)
        np.testing.assert_allclose(got, left, rtol=1e-13)
        after = found["after"].get()
        assert after.nans == np.isnan(left).sum()
        assert after.sum == pytest.approx(np.nansum(left), rel=1e-12)


def test_a_function_of_your_own_is_a_pass(analysed: Any) -> None:
    x = np.random.default_rng(0).random(100)
    source = "__device__ double squared(double x) { return x * x; }"
    left, found = analysed(x, squares=Map("squared", source), of_them=Statistics())
    np.testing.assert_array_equal(left, x * x)
    assert found["squares"] is None
    assert found["of_them"].get().sum == pytest.approx(x @ x, rel=1e-13)
    with pytest.raises((CompileError, DependencyFailed)):
        analysed(x, wrong=Map("squared", source.replace("x * x", "y")))


PASSES: dict[str, Pass] = {
    "raw": Statistics(),
    "out": Outliers(then="leave out"),
    "scaled": Normalise(),
    "bins": Histogram(20, -3, 3),
    "at": Quantiles((0.1, 0.9)),
}


def test_an_analysis_survives_a_kill_amid_it(backend: str) -> None:
    with System(backend, devices=1) as lab:
        (device,) = lab.devices
        actor = lab.spawn(lambda: MultiPassAnalysisActor(device, PASSES, dtype="float64"))
        x = of(5, 3000)
        actor.ask(Load(device.put(x))).result()

        def run(*, killed: bool) -> list[Any]:
            done = actor.ask(Analyse()).result()
            if killed:
                with pytest.raises(ContextLost):
                    lab.inject("kill").result()
            found: dict[str, Any] = done.found
            several = done.values, *found["bins"], found["at"], *found["out"], *found["raw"]
            return [one.get() for one in several]

        undisturbed = run(killed=False)
        for same, one in zip(run(killed=True), undisturbed, strict=True):
            np.testing.assert_array_equal(same, one)
        for same, one in zip(run(killed=False), undisturbed, strict=True):
            np.testing.assert_array_equal(same, one)
        assert device.generation == 2
        lab.check()


def test_mistakes_are_refused_and_the_passes_stay(spawn: Any, device: Device) -> None:
    actor = spawn(lambda: MultiPassAnalysisActor(device, {"at": Quantiles((0.5,))}))
    with pytest.raises(InvalidArgument, match="nothing is loaded yet"):
        actor.ask(Analyse()).result()
    for wrong, text in (
        (Quantiles((0.5, 1.5)), "one: Quantiles: at must be a number from 0 up to 1, not 1.5"),
        (Quantiles(()), r"at must be a list of numbers, not \(\)"),
        (Quantiles(0.5), "at must be a list of numbers, not 0.5"),  # type: ignore[arg-type]
        (Histogram(0), "bins must be an int from 1"),
        (Histogram(4, 2.0), "high must be a finite number|high must be a number above 2"),
        (Outliers(then="drop"), "then must be one of keep, clip, leave out, not 'drop'"),  # type: ignore[arg-type]
        (Normalise("mean"), "by must be one of spread, range, not 'mean'"),  # type: ignore[arg-type]
        ("median", "one must be a Statistics, .* not 'median'"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            actor.ask(SetPasses({"one": wrong})).result()  # type: ignore[dict-item]
    with pytest.raises(InvalidArgument, match=r"float32\[n\] .* not float64\[3\]"):
        actor.ask(Load(device.put(np.zeros(3)))).result()
    actor.ask(Load(device.put(np.arange(3, dtype="float32")))).result()
    assert actor.ask(Analyse()).result().found["at"].get().tolist() == [1]
    with pytest.raises(InvalidArgument, match="float32 or float64, not 'int32'"):
        MultiPassAnalysisActor(device, dtype="int32")
