"""The contract of dropout, embeddings and cross-entropy: definitions, PyTorch, refusals."""

from typing import Any

import numpy as np
import pytest

from accel_lab import array, dnn
from accel_lab.compute.device import Device
from accel_lab.errors import DependencyFailed, OutOfBounds
from accel_lab.libraries.rng import philox
from tests.contract.samples import assert_equal, reals, refused, value


def close(got: Any, expected: Any) -> None:
    np.testing.assert_allclose(got, expected.detach().numpy(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dropout_keeps_by_the_words_of_philox(device: Device, dtype: str) -> None:
    x = reals(1, (7, 11), dtype)
    words = philox.words(2**40 + 3, 0, 5, 77).reshape(7, 11)
    kept = words.astype("float64") / 2**32 >= 0.25
    expected = np.where(kept, x.astype("float64") / 0.75, 0)
    got = value(device, dnn.dropout(device.put(x), 0.25, 2**40 + 3, offset=5))
    np.testing.assert_allclose(
        got.astype("float64"), expected, rtol=1e-2 if x.itemsize < 4 else 1e-6
    )
    assert_equal(got == 0, ~kept)
    assert 40 < kept.sum() < 70


def test_dropout_of_nothing_keeps_all_and_steps_go_on(device: Device) -> None:
    x = device.put(np.ones((64, 8)))
    assert_equal(value(device, dnn.dropout(x, 0, 1)), np.ones((64, 8)))
    whole = value(device, dnn.dropout(x, 0.5, 9))
    half = value(device, dnn.dropout(device.put(np.ones((32, 8))), 0.5, 9, offset=256))
    assert_equal(half, whole[32:])


@pytest.mark.parametrize("indices", ["int32", "int64"])
def test_embeddings_and_their_gradient_are_pytorchs(device: Device, indices: Any) -> None:
    torch = pytest.importorskip("torch")
    table = torch.tensor(reals(1, (9, 5), "float64"), requires_grad=True)
    at = np.array([[0, 8, 3], [3, 3, 1]], indices)
    dy = reals(2, (2, 3, 5), "float64")
    y = torch.nn.functional.embedding(torch.tensor(at), table)
    y.backward(torch.tensor(dy))
    put = device.put(at)
    close(value(device, dnn.embedding(device.put(table.detach().numpy()), put)), y)
    close(value(device, dnn.embedding_gradient(device.put(dy), put, 9)), table.grad)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_cross_entropy_is_pytorchs(
    device: Device, reduction: Any, smoothing: float, *, weighted: bool
) -> None:
    torch = pytest.importorskip("torch")
    logits = torch.tensor(reals(1, (6, 5), "float64") * 3, requires_grad=True)
    labels = np.array([0, 4, 2, -7, 2, 1])
    weight = np.abs(reals(2, (5,), "float64")) + 0.1 if weighted else None
    loss = torch.nn.functional.cross_entropy(
        logits,
        torch.tensor(labels),
        None if weight is None else torch.tensor(weight),
        ignore_index=-7,
        reduction=reduction,
        label_smoothing=smoothing,
    )
    dloss = np.asarray(reals(3, tuple(loss.shape), "float64"))
    loss.backward(torch.tensor(dloss))
    options: Any = {"smoothing": smoothing, "ignored": -7, "reduction": reduction}
    x, y = device.put(logits.detach().numpy()), device.put(labels)
    w = None if weight is None else device.put(weight)
    close(value(device, dnn.cross_entropy(x, y, w, **options)), loss)
    got = dnn.cross_entropy_gradient(x, y, device.put(dloss), w, **options)
    close(value(device, got), logits.grad)


def test_finite_differences_are_the_gradient_of_cross_entropy(device: Device) -> None:
    x, step, h = reals(1, (4, 3), "float64"), reals(2, (4, 3), "float64"), 1e-6
    labels = device.put(np.array([0, 2, 1, 2]))
    up, down = (
        float(value(device, dnn.cross_entropy(device.put(x + s * step), labels))) for s in (h, -h)
    )
    got = dnn.cross_entropy_gradient(device.put(x), labels, device.put(np.array(1.0)))
    np.testing.assert_allclose((up - down) / (2 * h), (value(device, got) * step).sum(), rtol=1e-7)


def test_what_is_beyond_the_table_is_an_error(device: Device) -> None:
    table, at = device.put(np.ones((3, 2))), device.put(np.array([0, 3, -1]))
    dy, labels = device.put(np.ones((3, 2))), device.put(np.array([0, 2, 1]))
    for made in (
        dnn.embedding(table, at),
        dnn.embedding_gradient(dy, at, 3),
        dnn.cross_entropy(dy, labels),
    ):
        with pytest.raises(DependencyFailed, match="are not from 0 to") as failed:
            value(device, made)
        assert isinstance(failed.value.__cause__, OutOfBounds)


def test_mistakes_are_refused_with_what_and_what_was_expected(device: Device) -> None:
    x, floats = array.zeros(device, (4, 3)), array.zeros(device, (4,))
    labels, few = (array.zeros(device, (n,), "int64") for n in (4, 3))
    with refused(device, "rate is 1"):
        dnn.dropout(x, 1, 0)
    with refused(device, "seed is -1"):
        dnn.dropout(x, 0.5, -1)
    with refused(device, "indices is float32[4]", "int32 or int64"):
        dnn.embedding(x, floats)
    with refused(device, "a row for each index"):
        dnn.embedding_gradient(x, few, 3)
    with refused(device, "labels is int64[3]", "a label is wanted for each row"):
        dnn.cross_entropy(x, few)
    with refused(device, "weight is float32[4]", "[3]"):
        dnn.cross_entropy(x, labels, floats)
    with refused(device, "reduction is 'all'", "mean, sum, none"):
        dnn.cross_entropy(x, labels, reduction="all")  # type: ignore[arg-type]
    with refused(device, "dloss is float32[4]", "[]"):
        dnn.cross_entropy_gradient(x, labels, floats)
