"""Tokens a second of SmolLM2-135M on a device, beside its products alone in NumPy.

    python -m tests.benchmarks.language --tokens 64 --texts 16 --json language.json

So many texts side by side take turns with one alone. A token's products are matrices by one
vector, so the peer reads each weight once and does nothing else: no attention, no norm. It takes
turns, too, a token each. `--random` takes a small model that has learned nothing, and `--peer cuda`
(or `cpu`) lets Transformers, if it is installed, write the same texts with the same weights, on its
own after ours.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from accel_lab import System
from accel_lab.blueprints.language import LanguageModel, Session, Shape, Texts, Weights, smollm2
from accel_lab.blueprints.language.texts import pages_of

PROMPT = 32
SMALL = Shape(vocabulary=256, width=64, heads=4, shared=2, hidden=128, layers=2)


def products(weights: Weights, x: Any, hidden: Any) -> float:
    """Return the seconds of all products of one token."""
    begin = time.perf_counter()
    for layer in weights.layers:
        for matrix in (layer.q, layer.k, layer.v, layer.output, layer.gate, layer.up):
            matrix @ x
        layer.down @ hidden
    weights.embedding @ x
    return time.perf_counter() - begin


class Batch:
    """Texts that grow side by side, each by the most likely token."""

    def __init__(self, model: LanguageModel, texts: int, prompt: list[int], tokens: int) -> None:
        self._texts = Texts(model, texts * pages_of(PROMPT + tokens))
        self._numbers = [*range(texts)]
        prompts = [[*prompt[n:], *prompt[:n]] for n in self._numbers]
        self._newest = self._texts.append(self._numbers, prompts).argmax(axis=1).get()

    def step(self) -> float:
        """Give each text a token; returns the seconds."""
        begin = time.perf_counter()
        added = [[token] for token in self._newest.tolist()]
        self._newest = self._texts.append(self._numbers, added).argmax(axis=1).get()
        return time.perf_counter() - begin


def measured(lab: System, weights: Weights, tokens: int, texts: int) -> dict[str, Any]:
    """Generate so many tokens; return the rates, and the ratio of ours to the peer's."""
    shape, rng = weights.shape, np.random.default_rng(0)
    prompt = rng.integers(0, shape.vocabulary, PROMPT).tolist()
    x, hidden = (rng.standard_normal(n).astype(np.float32) for n in (shape.width, shape.hidden))
    model = LanguageModel(lab.devices[0], weights)
    session = Session(model, PROMPT + tokens)
    sentence = session.generate(prompt, tokens + 1)
    begin = time.perf_counter()
    next(sentence)  # after the prompt, and all weights are there
    first = time.perf_counter() - begin
    batch = Batch(model, texts, prompt, tokens)
    ours, peers, several = [], [], []
    for _ in range(tokens):
        begin = time.perf_counter()
        next(sentence)
        ours.append(time.perf_counter() - begin)
        peers.append(products(weights, x, hidden))
        several.append(batch.step())
    return {
        "device": lab.devices[0].name,
        "first_s": first,
        "tokens_per_s": tokens / sum(ours),
        "products_per_s": tokens / sum(peers),
        "ratio": statistics.median(peer / own for own, peer in zip(ours, peers, strict=True)),
        "texts": texts,
        "texts_tokens_per_s": texts * tokens / sum(several),
        "texts_ratio": statistics.median(
            texts * own / all_ for own, all_ in zip(ours, several, strict=True)
        ),
    }


def beside(lab: System, weights: Weights, tokens: int, texts: int, where: str) -> dict[str, Any]:
    """Write texts by ours and by Transformers; return rates, and how many tokens are the same."""
    from tests.benchmarks.peers.llama_of_transformers import TransformersPeer

    rng = np.random.default_rng(0)
    prompt = rng.integers(0, weights.shape.vocabulary, PROMPT).tolist()
    prompts = [[*prompt[n:], *prompt[:n]] for n in range(texts)]
    model, peer = LanguageModel(lab.devices[0], weights), TransformersPeer(weights, where)
    ours = list(Session(model, PROMPT + tokens).generate(prompt, tokens))
    same = 0
    rates: dict[str, list[float]] = {"one": [], "several": []}
    for _ in range(3):  # of which the first one warms up, too
        (theirs, *_rest), took = peer.tokens([prompt], tokens)
        rates["one"].append(tokens / took)
        same = next((i for i in range(tokens) if ours[i] != theirs[i]), tokens)
        _, took = peer.tokens(prompts, tokens)
        rates["several"].append(texts * tokens / took)
    return {
        "same_tokens": same,
        "peer_tokens_per_s": max(rates["one"]),
        "peer_texts_tokens_per_s": max(rates["several"]),
    }


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print a line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.language")
    parser.add_argument("--backend", default="host")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--texts", type=int, default=16)
    parser.add_argument("--random", action="store_true")
    parser.add_argument("--peer", choices=("cpu", "cuda"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    weights = Weights.random(SMALL, 0) if options.random else smollm2()[0]
    with System(options.backend, 1) as lab:
        row = measured(lab, weights, options.tokens, options.texts)
        if options.peer:
            row |= beside(lab, weights, options.tokens, options.texts, options.peer)
    name = row.pop("device")
    told = (f"{key} {one:.4g}" for key, one in row.items())
    sys.stdout.write(" | ".join((name, *told)) + "\n")
    row["device"] = name
    if options.json:
        options.json.write_text(json.dumps(row, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
