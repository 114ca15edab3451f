"""Filters are SciPy's, their definitions, and keep what they must."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from accel_lab import Device
from accel_lab.blueprints.realtime import (
    Bilateral,
    Correlate,
    Equalise,
    FilterImage,
    ImageFilterPipeline,
    Separable,
    SetFilters,
    Sobel,
)
from accel_lab.errors import InvalidArgument


@pytest.fixture(scope="module")
def filtered(spawn: Any, device: Device) -> Any:
    """Filter an image by one pipeline."""
    pipeline = spawn(lambda: ImageFilterPipeline(device))

    def filters(image: Any, *several: Any) -> Any:
        pipeline.ask(SetFilters(several)).result()
        return pipeline.ask(FilterImage(device.put(image))).result().get()

    return filters


def image_of(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).random(shape).astype("float32")


@settings(max_examples=8)
@given(
    seed=st.integers(0, 99),
    height=st.integers(1, 20),
    width=st.integers(1, 20),
    rows=st.sampled_from((1, 3, 7, 25)),
    columns=st.sampled_from((1, 5)),
)
def test_kernels_are_their_definition_also_where_they_are_larger_than_the_image(
    filtered: Any, seed: int, height: int, width: int, rows: int, columns: int
) -> None:
    image, weights = image_of(seed, height, width), image_of(seed + 1, rows, columns)
    np.testing.assert_allclose(
        filtered(image, Correlate(weights)), correlated(image, weights), rtol=1e-4
    )
    down, across = weights[:, 0], weights[0]
    want = correlated(correlated(image, down[:, None]), across[None])
    np.testing.assert_allclose(filtered(image, Separable(down, across)), want, rtol=1e-4)


def correlated(image: Any, weights: Any) -> Any:
    """Correlate by the definition; SciPy's is another where a kernel is far beyond the image."""
    rows, columns = weights.shape
    around = (rows // 2, rows // 2), (columns // 2, columns // 2)
    padded = np.pad(image.astype(float), around, mode="symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(padded, weights.shape)
    return (windows * weights.astype(float)).sum(axis=(2, 3))


def test_kernels_are_scipys(filtered: Any) -> None:
    image, weights = image_of(0, 31, 22), image_of(1, 7, 5)
    want = ndimage.correlate(image.astype(float), weights.astype(float), mode="reflect")
    np.testing.assert_allclose(filtered(image, Correlate(weights)), want, rtol=1e-4)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_each_channel_is_filtered_by_itself(filtered: Any, channels: int) -> None:
    image = image_of(3, 13, 17, channels)
    steep = [
        np.hypot(ndimage.sobel(one, 0), ndimage.sobel(one, 1))
        for one in np.moveaxis(image.astype(float), 2, 0)
    ]
    np.testing.assert_allclose(filtered(image, Sobel()), np.stack(steep, axis=-1), atol=1e-5)


def test_a_blur_keeps_the_light_and_filters_follow_each_other(filtered: Any) -> None:
    image = image_of(4, 30, 40, 3)
    blur = np.array([1, 4, 6, 4, 1]) / 16
    once = filtered(image, Separable(blur, blur))
    assert once.sum(dtype=float) == pytest.approx(image.sum(dtype=float), rel=1e-5)
    twice = filtered(image, Separable(blur, blur), Separable(blur, blur))
    np.testing.assert_allclose(twice, filtered(once, Separable(blur, blur)), rtol=1e-6)
    np.testing.assert_array_equal(filtered(image), image)


def test_the_bilateral_filter_is_its_definition_and_keeps_edges(filtered: Any) -> None:
    image = image_of(5, 9, 11, 3)
    radius, place, value = 2, 1.5, 0.3
    padded = np.pad(image.astype(float), ((2, 2), (2, 2), (0, 0)), mode="symmetric")
    total, weights = np.zeros((9, 11, 3)), np.zeros((9, 11, 1))
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            other = padded[2 + dy : 11 + dy, 2 + dx : 13 + dx]
            differs = ((other - image) ** 2).sum(axis=-1, keepdims=True)
            weight = np.exp(-(dy * dy + dx * dx) / (2 * place**2) - differs / (2 * value**2))
            total += weight * other
            weights += weight
    got = filtered(image, Bilateral(radius, place, value))
    np.testing.assert_allclose(got, total / weights, rtol=1e-5)
    step = np.zeros((8, 8), "float32")
    step[:, 4:] = 1
    np.testing.assert_allclose(filtered(step, Bilateral(3, 2.0, 0.05)), step, atol=1e-6)


def test_an_equalised_image_has_every_value_as_often_and_in_the_same_order(filtered: Any) -> None:
    image = image_of(6, 64, 64) ** 1.5
    got = filtered(image, Equalise(bins=4096))
    order = np.argsort(image, axis=None)
    assert (np.diff(got.ravel()[order]) >= 0).all()
    assert got.min() == 0
    assert got.max() == 1
    counts, _ = np.histogram(got, bins=8, range=(0, 1))
    assert abs(counts - 512).max() < 30
    flat = np.full((4, 4), 0.25, "float32")
    assert (filtered(flat, Equalise()) == 0).all()
    beyond = np.array([[-np.inf, -1e30, 0.0, 0.5, 1.0, 1e30, np.inf]], "float32")
    np.testing.assert_allclose(filtered(beyond, Equalise()), [[0, 0, 0, 0.25, 1, 1, 1]])


def test_mistakes_are_refused_and_the_filters_stay(spawn: Any, device: Device) -> None:
    pipeline = spawn(lambda: ImageFilterPipeline(device, Sobel()))
    for message, text in (
        (SetFilters((Correlate(np.ones((2, 3))),)), r"odd number .* not of shape \(2, 3\)"),
        (SetFilters((Separable([1, np.inf, 1], [1]),)), "must be finite"),
        (SetFilters((Bilateral(2, 0.0, 1.0),)), "sigma_place must be a number from 1e-15"),
        (SetFilters((Bilateral(2, 1.0, 1e-20),)), "sigma_value must be a number from 1e-15"),
        (SetFilters((Equalise(high=-1.0),)), "high must be a number above 0"),
        (SetFilters(("blur",)), "not 'blur'"),  # type: ignore[arg-type]
        (FilterImage(device.put(np.zeros((2, 2, 2), "float32"))), "1, 3 or 4 channels"),
        (FilterImage(device.put(np.zeros((2, 2)))), r"not float64\[2, 2\]"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            pipeline.ask(message).result()
    image = image_of(7, 5, 5)
    got = pipeline.ask(FilterImage(device.put(image))).result().get()
    want = np.hypot(ndimage.sobel(image.astype(float), 0), ndimage.sobel(image.astype(float), 1))
    np.testing.assert_allclose(got, want, atol=1e-5)
