"""Models that PyTorch exports give what PyTorch computes."""

import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel_lab import onnx
from accel_lab.compute.device import Device
from tests.conftest import require


@pytest.fixture(autouse=True)
def _packages() -> None:
    require("onnx")
    require("torch")


def exported(module: Any, inputs: tuple[Any, ...], version: int, free: dict[str, Any]) -> bytes:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = io.BytesIO()
        names = [f"x{k}" for k in range(len(inputs))]
        torch.onnx.export(
            module,
            inputs,
            file,
            opset_version=version,
            dynamo=False,
            input_names=names,
            dynamic_axes=free,
        )
    return file.getvalue()


def compare(
    device: Device,
    module: Any,
    *inputs: Any,
    version: int = 17,
    free: dict[str, Any] | None = None,
    others: tuple[Any, ...] = (),
) -> None:
    """Compare outputs with PyTorch's, of the inputs of the export and of others."""
    import torch

    torch.manual_seed(0)
    model = onnx.load(exported(module.eval(), inputs, version, free or {}), device)
    for several in (inputs, *others):
        with torch.no_grad():
            wanted = module(*several)
        flat = [wanted] if isinstance(wanted, torch.Tensor) else _flat(wanted)
        made = model.run({f"x{k}": x.numpy() for k, x in enumerate(several)})
        for got, one in zip(made.values(), flat, strict=True):
            np.testing.assert_allclose(got.get(), one.numpy(), rtol=1e-4, atol=1e-5)


def _flat(values: Any) -> list[Any]:
    import torch

    if isinstance(values, torch.Tensor):
        return [values]
    return [one for several in values for one in _flat(several)]


def test_a_vision_network_with_free_extents(device: Device) -> None:
    import torch
    from torch import nn

    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.SiLU(),
        nn.Conv2d(8, 8, 3, groups=8, stride=2, padding=1),
        nn.Hardswish(),
        nn.Upsample(scale_factor=2, mode="bilinear"),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 3),
    )
    free = {"x0": {0: "n", 2: "h", 3: "w"}}
    other = (torch.randn(3, 3, 12, 20),)
    compare(device, network, torch.randn(2, 3, 16, 16), free=free, others=(other,))


def test_a_transformer_with_a_free_length(device: Device) -> None:
    import torch
    from torch import nn
    from torch.nn.functional import scaled_dot_product_attention as attention

    class Block(nn.Module):  # type: ignore[misc] # PyTorch is Any to the checks
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(40, 16), nn.Embedding(12, 16)
            self.all, self.out = nn.Linear(16, 48), nn.Linear(16, 40)
            self.before, self.behind = nn.LayerNorm(16), nn.LayerNorm(16)
            self.wide = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))

        def forward(self, words: Any) -> Any:
            n, t = words.shape
            x = self.words(words) + self.places(torch.arange(t))
            q, k, v = self.all(self.before(x)).reshape(n, t, 3, 4, 4).permute(2, 0, 3, 1, 4)
            mixed = attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, 16)
            x = x + mixed
            return self.out(x + self.wide(self.behind(x))).log_softmax(-1)

    torch.manual_seed(0)
    free, other = {"x0": {0: "n", 1: "t"}}, (torch.randint(0, 40, (1, 11)),)
    compare(device, Block(), torch.randint(0, 40, (2, 7)), free=free, others=(other,))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_recurrent_layer_in_both_directions(device: Device, kind: str) -> None:
    import torch
    from torch import nn

    torch.manual_seed(0)
    layer = getattr(nn, kind)(6, 8, num_layers=2, bidirectional=True)
    compare(device, layer, torch.randn(5, 3, 6))


def _indexing(x: Any) -> Any:
    return x[x > 0], x.flip(0).roll(2, 1)[:, [0, -1]], x.topk(3)


def _statistics(x: Any) -> Any:
    return x.std(1), x.var(0), x.norm(dim=1), x.logsumexp(1), x.cumsum(1), x.argsort(1)


def _places(x: Any) -> Any:
    return x.tril(), x.scatter_add(1, (x > 0).long(), x * 2), x.index_select(0, x[0, :2].long())


@pytest.mark.parametrize("function", [_indexing, _statistics, _places])
def test_functions_of_tensors(device: Device, function: Callable[[Any], Any]) -> None:
    import torch

    class Module(torch.nn.Module):  # type: ignore[misc] # PyTorch is Any to the checks
        def forward(self, x: Any) -> Any:
            return function(x)

    torch.manual_seed(1)
    x = torch.randn(5, 6)
    x[0] = torch.arange(6) % 5
    compare(device, Module(), x)
