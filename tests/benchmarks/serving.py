"""SmolLM2-135M served over HTTP to OpenAI's client: many clients beside one, and under kills.

    python -m tests.benchmarks.serving --clients 16 --tokens 64 --rounds 3 --json serving.json

One client that asks again and again takes turns with so many at once. In a third turn of each
round, a context is killed in the middle; the aim is that the slowest hundredth of those requests
takes a restart and twice what it takes in quiet. A restart is from a kill to the end of a text of
one token that is asked at once. `--random small` (or `full`, with SmolLM2-135M's extents) takes a
model that has learned nothing. `--peer cuda` (or `cpu`) has Transformers, if it is installed, write
as many texts, alone and together, with the same weights, on its own after ours.
"""

import argparse
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai

from accel_lab import System
from accel_lab.blueprints.language import Shape, Tokenizer, Weights, smollm2
from accel_lab.blueprints.serving import EVERYBODY, Deployment, Endpoint, TextModel, serve
from tests.benchmarks.language import SMALL

FULL = Shape(vocabulary=49152, width=576, heads=9, shared=3, hidden=1536, layers=30)
SHAPES = {"small": SMALL, "full": FULL}
NAME = "text"
PROMPT = "The {} of the house looked out of the window and saw a"
WAIT_S = 120.0


class Clients:
    """So many clients of an endpoint, a connection each."""

    def __init__(self, endpoint: Endpoint, count: int) -> None:
        token = endpoint.deployment.accounts[EVERYBODY].token
        self.all = [
            openai.OpenAI(base_url=endpoint.url, api_key=token, max_retries=0, timeout=WAIT_S)
            for _ in range(count)
        ]

    def ask(self, client: int, tokens: int) -> int:
        """Have a text written; returns how many tokens it has."""
        made = self.all[client].completions.create(
            model=NAME, prompt=PROMPT.format(client), max_tokens=tokens, temperature=0
        )
        assert made.usage is not None
        return made.usage.completion_tokens

    def turn(
        self, count: int, each: int, tokens: int, in_the_middle: Callable[[], object] = lambda: None
    ) -> tuple[float, list[float]]:
        """Have `count` clients ask `each` times; returns tokens a second, and what each took."""
        took: list[float] = []
        written: list[int] = []

        def client(number: int) -> None:
            for n in range(each):
                if number == 0 and n == each // 2:
                    in_the_middle()
                begin = time.perf_counter()
                written.append(self.ask(number, tokens))
                took.append(time.perf_counter() - begin)

        threads = [threading.Thread(target=client, args=(number,)) for number in range(count)]
        begin = time.perf_counter()
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert len(took) == count * each, "a request failed"
        return sum(written) / (time.perf_counter() - begin), took


def measured(
    lab: System, model: TextModel, clients: int, each: int, tokens: int, rounds: int
) -> dict[str, Any]:
    """Let the ways take turns; return the rates and the times."""
    one, many, kills, restarts, within = [], [], [], [], 0
    quiet: list[float] = []

    def kill() -> None:
        lab.inject("kill").add_waiter(lambda: None)

    with Deployment(lab, {NAME: model}, max_active=clients) as made, serve(made) as endpoint:
        asked = Clients(endpoint, clients)
        asked.turn(clients, 1, tokens)  # warms up
        for _ in range(rounds):
            one.append(asked.turn(1, each, tokens)[0])
            rate, took = asked.turn(clients, each, tokens)
            many.append(rate)
            quiet.append(_slowest(took))
            begin = time.perf_counter()
            kill()
            asked.ask(0, 1)
            restarts.append(time.perf_counter() - begin)
            kills.append(_slowest(asked.turn(clients, each, tokens, kill)[1]))
            within += kills[-1] <= restarts[-1] + 2 * quiet[-1]
    ratios = [several / single for several, single in zip(many, one, strict=True)]
    return {
        "device": lab.devices[0].name,
        "clients": clients,
        "one_tokens_per_s": statistics.median(one),
        "tokens_per_s": statistics.median(many),
        "ratio": statistics.median(ratios),
        "least": min(ratios),
        "p99_s": statistics.median(quiet),
        "p99_under_a_kill_s": statistics.median(kills),
        "restart_s": statistics.median(restarts),
        "rounds_within": f"{within} of {rounds}",
    }


def beside(weights: Weights, tokenizer: Tokenizer, clients: int, tokens: int, where: str) -> Any:
    """Return the tokens a second of Transformers, for one text and for all at once."""
    from tests.benchmarks.peers.llama_of_transformers import TransformersPeer

    peer = TransformersPeer(weights, where)
    prompts = [tokenizer.encode(PROMPT.format(number)) for number in range(clients)]
    shortest = min(map(len, prompts))
    prompts = [one[:shortest] for one in prompts]
    single, several = [], []
    for _ in range(3):  # of which the first one warms up
        single.append(tokens / peer.tokens(prompts[:1], tokens)[1])
        several.append(clients * tokens / peer.tokens(prompts, tokens)[1])
    return {"peer_one_tokens_per_s": max(single), "peer_tokens_per_s": max(several)}


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print a line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.serving")
    parser.add_argument("--backend", default="host")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--requests", type=int, default=4, help="of each client in a turn")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--random", choices=list(SHAPES))
    parser.add_argument("--peer", choices=("cpu", "cuda"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    if options.random:
        weights, tokenizer = Weights.random(SHAPES[options.random], 0), Tokenizer.of_bytes()
    else:
        weights, tokenizer = smollm2()
    model = TextModel(weights, tokenizer, ends=())
    clients, tokens = options.clients, options.tokens
    with System(options.backend, options.devices, max_restarts=1000) as lab:
        row = measured(lab, model, clients, options.requests, tokens, options.rounds)
    if options.peer:
        row |= beside(weights, tokenizer, clients, tokens, options.peer)
    told = (f"{key} {one:.4g}" if isinstance(one, float) else str(one) for key, one in row.items())
    sys.stdout.write(" | ".join(told) + "\n")
    if options.json:
        options.json.write_text(json.dumps(row, indent=1))
    return 0


def _slowest(took: list[float]) -> float:
    return sorted(took)[min(len(took) - 1, int(len(took) * 0.99))]


if __name__ == "__main__":
    raise SystemExit(main())
