"""Replicas of a served model that are killed, blocked or lost, and generations that are swapped."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from accel_lab import System
from accel_lab.blueprints.language import Shape, Tokenizer, Weights
from accel_lab.blueprints.patterns import Statistics, SwapRefused
from accel_lab.blueprints.serving import Deployment, TextModel
from accel_lab.blueprints.serving.model import Generation
from accel_lab.errors import AccelError, InvalidArgument
from tests.contract.language_reference import greedy
from tests.faults.conftest import census, settle

TINY = Shape(vocabulary=256, width=16, heads=4, shared=2, hidden=24, layers=2, context=300)
BYTES = Tokenizer.of_bytes()
TURNED = Tokenizer(BYTES.tokens[::-1], ())
WEIGHTS, OTHER = Weights.random(TINY, 3), Weights.random(TINY, 4)


@pytest.fixture(autouse=True)
def _no_threads_left() -> Iterator[None]:
    before = census()
    yield
    assert settle(lambda: census().threads <= before.threads), census()


@pytest.fixture
def lab() -> Iterator[System]:
    with System("host", 2, max_restarts=1000) as system:
        yield system


def text(deployment: Deployment, prompt: bytes, count: int) -> list[int]:
    """Return the tokens of an answer."""
    model = deployment.model("tiny")
    assert model is not None
    asked = Generation(tuple(prompt), count)
    return list(deployment.generate("tiny", model, asked)._stream)


def outcomes(deployment: Deployment, count: int, meanwhile: Callable[[], Any]) -> dict[bytes, Any]:
    """Return the texts, or typed errors, of eight clients at a time."""
    found: dict[bytes, Any] = {}

    def client(number: int) -> None:
        prompt = f"text {number}".encode()
        assert prompt not in found
        try:
            found[prompt] = text(deployment, prompt, 20)
        except AccelError as error:
            found[prompt] = error

    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(client, number) for number in range(count)]
        assert settle(lambda: deployment.statistics.answered > 2)
        meanwhile()
        for one in futures:
            one.result(100)
    assert len(found) == count
    return found


def of_pool(deployment: Deployment) -> Statistics:
    return deployment._models["tiny"].serving._pool.statistics


def test_eight_clients_stream_while_one_of_two_replicas_is_killed(lab: System) -> None:
    with Deployment(lab, {"tiny": TextModel(WEIGHTS, BYTES)}, max_active=3) as deployment:
        first = lab.devices[0]

        def kill() -> None:
            lab.inject("kill", first).add_waiter(lambda: None)

        found = outcomes(deployment, 16, kill)
        assert found == {prompt: greedy(WEIGHTS, list(prompt), 20) for prompt in found}
        assert settle(lambda: first.generation == 2)
        assert (deployment.statistics.answered, deployment.statistics.failed) == (16, 0)
        assert deployment.accounts["everybody"].used == sum(len(one) + 20 for one in found)


def test_a_replica_that_is_lost_for_good_is_avoided() -> None:
    with (
        System("host", 2, max_restarts=0) as lab,
        Deployment(lab, {"tiny": TextModel(WEIGHTS, BYTES)}, max_active=4) as deployment,
    ):
        first = lab.devices[0]

        def kill() -> None:
            lab.inject("kill", first).add_waiter(lambda: None)

        found = outcomes(deployment, 16, kill)
        assert settle(lambda: first.state == "circuit open")
        right = {prompt for prompt, one in found.items() if not isinstance(one, AccelError)}
        assert all(found[prompt] == greedy(WEIGHTS, list(prompt), 20) for prompt in right)
        assert len(found) - len(right) <= 4  # those that were half told there
        assert deployment.statistics.answered == len(right)
        for number in range(4):
            prompt = b"after %d" % number
            assert text(deployment, prompt, 5) == greedy(WEIGHTS, list(prompt), 5)
        lab.inject("kill", lab.devices[1]).add_waiter(lambda: None)
        assert settle(lambda: lab.devices[1].state == "circuit open")
        with pytest.raises(AccelError, match="may take a request"):
            text(deployment, b"nobody", 5)


def wait_for(path: str) -> None:
    """Keep a context busy until a file is there."""
    while not Path(path).exists():
        time.sleep(0.01)


def test_a_text_without_a_token_is_written_by_another_replica(lab: System, tmp_path: Path) -> None:
    models = {"tiny": TextModel(WEIGHTS, BYTES)}
    gate = tmp_path / "gate"
    with Deployment(lab, models, patience_s=0.5) as deployment:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda n: text(deployment, b"warm %d" % n, 2), range(2)))
        blocked = lab.devices[0].run(wait_for, str(gate))
        with ThreadPoolExecutor(4) as pool:
            prompts = [b"text %d" % number for number in range(4)]
            found = list(pool.map(lambda prompt: text(deployment, prompt, 5), prompts))
        assert not blocked.done
        assert found == [greedy(WEIGHTS, list(prompt), 5) for prompt in prompts]
        assert of_pool(deployment).reruns > 0
        gate.touch()
        blocked.result()


def test_another_model_serves_after_its_texts_are_alike(lab: System) -> None:
    with Deployment(lab, {"tiny": TextModel(WEIGHTS, BYTES)}) as deployment:
        pairs: list[tuple[str, str]] = []

        def swapped(weights: Weights, agree: Callable[[str, str], bool] | None, **more: Any) -> Any:
            model = TextModel(weights, BYTES)
            options: Any = {"shadow": 0.5, "compare": 2, "agree": agree} | more
            with ThreadPoolExecutor(1) as pool:
                reply = pool.submit(deployment.swap, "tiny", model, **options)
                while not reply.done():
                    text(deployment, b"abc", 4)
                return reply.result()

        with pytest.raises(SwapRefused) as caught:
            swapped(OTHER, None)
        assert (caught.value.compared, caught.value.differing) == (2, 2)
        assert text(deployment, b"abc", 4) == greedy(WEIGHTS, list(b"abc"), 4)
        assert swapped(Weights.random(TINY, 3), None) == (3, 2, 0)

        def alike(old: str, new: str) -> bool:
            pairs.append((old, new))
            return True

        assert swapped(OTHER, alike) == (4, 2, 0)
        old, new = (greedy(one, list(b"abc"), 4) for one in (WEIGHTS, OTHER))
        assert pairs == [(BYTES.decode(old), BYTES.decode(new))] * 2
        assert text(deployment, b"abc", 4) == new
        assert deployment.roll_back("tiny") == 3
        assert text(deployment, b"abc", 4) == old
        with pytest.raises(InvalidArgument, match="no generation before 3"):
            deployment.roll_back("tiny")
        with pytest.raises(InvalidArgument, match="tiny has another tokenizer"):
            deployment.swap("tiny", TextModel(OTHER, TURNED), shadow=0.5, compare=1)
        # the generation that serves, alone: two steps, a pool, the swap's own and the share
        assert settle(lambda: sum("tiny" in one for one in repr(lab.tree()).splitlines()) == 4)


@pytest.mark.parametrize("tokenizer", [BYTES, TURNED])
def test_texts_that_wait_are_written_by_whom_can_read_them(
    lab: System, tokenizer: Tokenizer
) -> None:
    models = {"tiny": TextModel(WEIGHTS, BYTES)}
    with (
        Deployment(lab, models, replicas=1, max_active=1) as deployment,
        ThreadPoolExecutor(2) as pool,
    ):
        first = pool.submit(text, deployment, b"first", 200)
        assert settle(lambda: deployment.statistics.running == 1)
        second = pool.submit(text, deployment, b"second", 5)
        assert settle(lambda: deployment.statistics.waiting == 1)
        assert deployment.swap("tiny", TextModel(OTHER, tokenizer)) == (2, 0, 0)
        assert not first.done()
        assert first.result(60) == greedy(WEIGHTS, list(b"first"), 200)
        writer = OTHER if tokenizer is BYTES else WEIGHTS
        assert second.result(60) == greedy(writer, list(b"second"), 5)
