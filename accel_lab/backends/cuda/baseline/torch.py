"""The same calls of PyTorch, where it is installed; it has a current stream of its own."""

from types import SimpleNamespace
from typing import Any

from accel_lab.backends.cuda.baseline import Call
from accel_lab.backends.eager import EXPRESSIONS


def axpy(size: int) -> Call:
    """Prepare a sum of two square matrices, into a third."""
    torch, wait = _torch()
    x, y, out = (torch.ones(size, size, device="cuda") for _ in range(3))
    return "torch.add", lambda: torch.add(x, y, out=out), wait


def c2c(*shape: int) -> Call:
    """Prepare a transform of complex numbers along the last axis."""
    torch, wait = _torch()
    x = torch.randn(*shape, dtype=torch.complex64, device="cuda")
    return "torch.fft.fft", lambda: torch.fft.fft(x), wait


def r2c(*shape: int) -> Call:
    """Prepare a transform of real numbers along the last axis."""
    torch, wait = _torch()
    x = torch.randn(*shape, device="cuda")
    return "torch.fft.rfft", lambda: torch.fft.rfft(x), wait


def uniform(count: int) -> Call:
    """Prepare a draw of float32."""
    torch, wait = _torch()
    out = torch.empty(count, device="cuda")
    return "torch.rand", lambda: torch.rand(count, out=out), wait


def expression(name: str, size: int) -> Call:
    """Prepare an expression of two square matrices."""
    torch, wait = _torch()
    functions: Any = SimpleNamespace(
        exp=torch.exp,
        maximum=lambda x, least: torch.clamp(x, min=least),
        where=torch.where,
        rfft=torch.fft.rfft,
    )
    a, b = (torch.randn(size, size, device="cuda") for _ in "ab")
    evaluate = EXPRESSIONS[name]
    return "PyTorch", lambda: evaluate(functions, a, b), wait


def _torch() -> tuple[Any, Any]:
    import torch

    return torch, torch.cuda.current_stream().synchronize
