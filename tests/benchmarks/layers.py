"""Attention and two blocks in training, beside PyTorch's eager and compiled, in one run.

    python -m tests.benchmarks.layers --backend cuda --json layers.json

Attention is beside the best of PyTorch's backends (cuDNN's or FlashAttention's). A decoded token is
beside a copy that moves as many bytes as it reads of keys and values, so its last column is the
share of the bandwidth that a copy has. A block's step is its loss and all gradients. Each figure is
the median of rounds in which ours and the peers take turns, and a round is so many calls in a row,
and one wait.
"""

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from accel_lab import AccelRef, System, attention
from accel_lab.compute.device import Device
from tests.contract.blocks import learned, learned_by_residuals

ROUNDS = 7
DECODE = "decode, pages of"
Call = Callable[[], Any]
Ways = dict[str, tuple[Call, Call]]
"""A call by each way, and how to wait for its device."""


def per_call(call: Call, wait: Call, calls: int) -> float:
    """Return the seconds of a call among so many in a row."""
    wait()
    begin = time.perf_counter()
    kept = [call() for _ in range(calls)]
    wait()
    del kept
    return (time.perf_counter() - begin) / calls


def by_turns(ways: Ways, calls: int) -> dict[str, float]:
    """Return the median seconds of each way."""
    for call, wait in ways.values():
        per_call(call, wait, 3)
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, (call, wait) in ways.items():
            found[name].append(per_call(call, wait, calls))
    return {name: statistics.median(one) for name, one in found.items()}


def ended(device: Device) -> None:
    """Wait for all that was sent."""
    device.ping().result(60)


class Peers:
    """PyTorch on the same device."""

    def __init__(self, where: str) -> None:
        import torch

        self.torch, self.where = torch, where

    def wait(self) -> None:
        """Wait for the device."""
        if self.where == "cuda":
            self.torch.cuda.synchronize()

    def tensor(self, x: Any, dtype: str) -> Any:
        """Return an array in a dtype, whose gradient is wanted."""
        made = self.torch.tensor(x, device=self.where).to(getattr(self.torch, dtype))
        return made.requires_grad_()


def drawn(seed: int, *shape: int) -> Any:
    """Return normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def placed(device: Device, x: Any, dtype: str) -> AccelRef:
    """Put an array on a device in a dtype."""
    return device.put(x).astype(dtype)


def attentions(device: Device, peers: Peers, *, small: bool) -> dict[str, dict[str, float]]:
    """Time attention forward and backward, B4 H16 S8192 D128 in bfloat16."""
    torch, of = peers.torch, peers.torch.nn.functional
    shape = (1, 2, 256, 64) if small else (4, 16, 8192, 128)
    dtype = "float32" if small else "bfloat16"
    arrays = [drawn(seed, *shape) for seed in range(4)]
    q, k, v, dy = (placed(device, one, dtype) for one in arrays)
    tq, tk, tv, tdy = (peers.tensor(one, dtype) for one in arrays)
    done, rows = partial(ended, device), {}
    for causal in ("none", "top_left"):
        y, lse = attention.attend(q, k, v, causal=causal, lse=True)
        assert lse is not None
        torchs = partial(of.scaled_dot_product_attention, tq, tk, tv, is_causal=causal != "none")
        ours: Call = partial(attention.attend, q, k, v, causal=causal, lse=True)
        forwards: Ways = {"ours": (ours, done)}
        ours = partial(attention.attend_gradient, q, k, v, y, lse, dy, causal=causal)
        backwards: Ways = {"ours": (ours, done)}
        for name, call in _by_backends(torch, torchs, small=small).items():
            forwards[name] = (call, peers.wait)
            gradient = partial(torch.autograd.grad, call(), (tq, tk, tv), tdy, retain_graph=True)
            backwards[name] = (gradient, peers.wait)
        rows[f"attention forward, causal {causal}"] = by_turns(forwards, 4)
        rows[f"attention backward, causal {causal}"] = by_turns(backwards, 4)
    return rows


def _by_backends(torch: Any, call: Call, *, small: bool) -> dict[str, Call]:
    """Return the call under each of PyTorch's backends for attention."""
    if small:
        return {"torch": call}
    kinds = torch.nn.attention.SDPBackend
    return {
        "torch cuDNN": partial(_under, torch, kinds.CUDNN_ATTENTION, call),
        "torch Flash": partial(_under, torch, kinds.FLASH_ATTENTION, call),
    }


def _under(torch: Any, backend: Any, call: Call) -> Any:
    with torch.nn.attention.sdpa_kernel(backend):
        return call()


def decoded(*, small: bool) -> tuple[int, int, int, int]:
    """Return the sequences, the heads, the tokens in the cache, and a head's features."""
    return (2, 2, 64, 16) if small else (32, 32, 8192, 128)


def read_bytes(*, small: bool) -> int:
    """Return how much a decoded token reads of keys and values."""
    return 2 * math.prod(decoded(small=small)) * (4 if small else 2)


def decoding(device: Device, peers: Peers, *, small: bool) -> dict[str, dict[str, float]]:
    """Time a token with a paged cache, beside a copy; what that moves is read and written."""
    sequences, heads, tokens, width = decoded(small=small)
    dtype = "float32" if small else "bfloat16"
    k, v = (placed(device, drawn(seed, 1, heads, tokens, width), dtype) for seed in range(2))
    q = placed(device, drawn(2, sequences, heads, 1, width), dtype)
    half = peers.torch.zeros(read_bytes(small=small) // 2, dtype=peers.torch.uint8)
    source = half.to(peers.where)
    copy = partial(peers.torch.empty_like(source).copy_, source)
    rows = {}
    for page_size in (16, 64):
        pages = sequences * tokens // page_size
        cache = attention.KVCache(
            device, heads=heads, width=width, pages=pages, page_size=page_size, dtype=dtype
        )
        for number in range(sequences):  # each in pages of its own
            cache.append(k, v, number)
        ours: Call = partial(cache.attend, q, [*range(sequences)])
        ways: Ways = {"ours": (ours, partial(ended, device)), "torch copy": (copy, peers.wait)}
        rows[f"{DECODE} {page_size}"] = by_turns(ways, 2 if small else 20)
        cache.free()
    return rows


def residual(device: Device, peers: Peers, *, small: bool) -> dict[str, dict[str, float]]:
    """Time a step of a residual block: 64 images of 56 by 56, 64 channels, float32."""
    torch, of = peers.torch, peers.torch.nn.functional
    batch, channels, extent = (4, 8, 8) if small else (64, 64, 56)
    shapes = {
        "stem": (channels, 3, 3, 3),
        "conv1": (channels, channels, 3, 3),
        "scale1": (channels,),
        "bias1": (channels,),
        "conv2": (channels, channels, 3, 3),
        "scale2": (channels,),
        "bias2": (channels,),
        "head": (channels, 10),
    }
    arrays = {name: 0.1 * drawn(at, *shape) for at, (name, shape) in enumerate(shapes.items())}
    images, labels = drawn(99, batch, 3, extent, extent), np.arange(batch) % 10
    p = {name: device.put(one) for name, one in arrays.items()}
    p["begin"] = device.put(np.zeros(channels, np.float32))
    x, y = device.put(images), device.put(labels)
    tp = {name: peers.tensor(one, "float32") for name, one in arrays.items()}
    tx, ty = peers.tensor(images, "float32").detach(), torch.tensor(labels, device=peers.where)

    def loss(tp: Any, x: Any, y: Any) -> Any:
        h = of.relu(of.conv2d(x, tp["stem"], padding=1))
        c = of.conv2d(h, tp["conv1"], padding=1)
        a = of.relu(of.batch_norm(c, None, None, tp["scale1"], tp["bias1"], training=True))
        c = of.conv2d(a, tp["conv2"], padding=1)
        h = of.relu(of.batch_norm(c, None, None, tp["scale2"], tp["bias2"], training=True) + h)
        return of.cross_entropy(h.mean(dim=(2, 3)) @ tp["head"], y)

    ways = _steps(peers, loss, (tp, tx, ty), list(tp.values()), compiled=not small)
    ways["ours"] = (partial(learned_by_residuals, p, x, y), partial(ended, device))
    return {"residual block": by_turns(ways, 10)}


def transformer(device: Device, peers: Peers, *, small: bool) -> dict[str, dict[str, float]]:
    """Time a step of a transformer block: 8 texts of 1024 tokens, width 1024, 16 heads, float32."""
    torch, of = peers.torch, peers.torch.nn.functional
    batch, tokens, width, heads = (4, 8, 16, 4) if small else (8, 1024, 1024, 16)
    shapes = {
        "embed": (tokens, width),
        "place": (tokens, width),
        "scale1": (width,),
        "bias1": (width,),
        "to_q": (width, width),
        "to_k": (width, width),
        "to_v": (width, width),
        "mix": (width, width),
        "scale2": (width,),
        "bias2": (width,),
        "up": (width, 4 * width),
        "down": (4 * width, width),
        "head": (width, 10),
    }
    arrays = {
        name: float(width) ** -0.5 * drawn(at, *shape)
        for at, (name, shape) in enumerate(shapes.items())
    }
    images, labels = drawn(99, batch * tokens, tokens), np.arange(batch) % 10
    p = {name: device.put(one) for name, one in arrays.items()}
    x, y = device.put(images), device.put(labels)
    tp = {name: peers.tensor(one, "float32") for name, one in arrays.items()}
    tx = peers.tensor(images, "float32").detach().reshape(batch, tokens, tokens)
    ty = torch.tensor(labels, device=peers.where)

    def loss(tp: Any, x: Any, y: Any) -> Any:
        h = x @ tp["embed"] + tp["place"]
        n = of.layer_norm(h, (width,), tp["scale1"], tp["bias1"])
        q, k, v = (
            (n @ tp[name]).reshape(batch, tokens, heads, -1).transpose(1, 2)
            for name in ("to_q", "to_k", "to_v")
        )
        mixed = of.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + mixed.transpose(1, 2).reshape(batch, tokens, width) @ tp["mix"]
        n = of.layer_norm(h, (width,), tp["scale2"], tp["bias2"])
        h = h + of.gelu(n @ tp["up"]) @ tp["down"]
        return of.cross_entropy(h.mean(dim=1) @ tp["head"], y)

    ways = _steps(peers, loss, (tp, tx, ty), list(tp.values()), compiled=not small)
    ways["ours"] = (partial(learned, p, x, y, heads), partial(ended, device))
    return {"transformer block": by_turns(ways, 10)}


def _steps(peers: Peers, loss: Any, given: Any, parameters: list[Any], *, compiled: bool) -> Ways:
    """Return PyTorch's ways to take a step."""
    gradients = peers.torch.autograd.grad

    def step(of: Any) -> Any:
        return gradients(of(*given), parameters)

    ways: Ways = {"torch": (partial(step, loss), peers.wait)}
    if compiled:
        ways["torch compiled"] = (partial(step, peers.torch.compile(loss)), peers.wait)
    return ways


PARTS = {
    "attention": attentions,
    "decode": decoding,
    "residual": residual,
    "transformer": transformer,
}


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.layers")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--small", action="store_true", help="tiny extents, to try it")
    parser.add_argument("--only", choices=list(PARTS), action="append")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    rows: dict[str, dict[str, float]] = {}
    with System(options.backend, 1) as lab:
        peers = Peers("cuda" if lab.backend == "cuda" else "cpu")
        for name in options.only or PARTS:
            rows |= PARTS[name](lab.devices[0], peers, small=options.small)
    sys.stdout.write(
        "| what | ours, ms | peers, ms | best peer's time by ours |\n|---|---|---|---|\n"
    )
    for what, row in rows.items():
        theirs = {name: one for name, one in row.items() if name != "ours"}
        told = ", ".join(f"{name} {1e3 * one:.3f}" for name, one in theirs.items())
        ratio = min(theirs.values()) / row["ours"]
        sys.stdout.write(f"| {what} | {1e3 * row['ours']:.3f} | {told} | {ratio:.2f} |\n")
    nbytes = read_bytes(small=options.small)
    for what, row in rows.items():
        if what.startswith(DECODE):
            ours, copy = (nbytes / row[name] / 1e9 for name in ("ours", "torch copy"))
            told = f"{what}: {nbytes / 1e9:.4g} GB of keys and values, {ours:.4g} GB/s"
            sys.stdout.write(f"{told}; a copy has {copy:.4g} GB/s\n")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
