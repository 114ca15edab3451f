"""A real client of OpenAI's talks to tiny models, also through kills, swaps and refusals."""

import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import openai
import pytest

from accel_lab import System
from accel_lab.blueprints.language import Shape, Tokenizer, Weights
from accel_lab.blueprints.serving import (
    EVERYBODY,
    Client,
    Deployment,
    Embedder,
    Endpoint,
    ServingUnavailable,
    TextModel,
    serve,
    server,
)
from accel_lab.blueprints.serving.model import Generation
from accel_lab.errors import InvalidArgument
from tests.contract.language_reference import greedy
from tests.faults.conftest import census, settle

TINY = Shape(vocabulary=256, width=16, heads=4, shared=2, hidden=24, layers=2, context=300)
BYTES = Tokenizer.of_bytes()
WEIGHTS, OTHER = Weights.random(TINY, 3), Weights.random(TINY, 4)
SAID: list[Any] = [{"role": "user", "content": "hi"}]


@pytest.fixture(autouse=True)
def _no_threads_left() -> Iterator[None]:
    before = census()
    yield
    assert settle(lambda: census().threads <= before.threads), census()


@pytest.fixture
def lab() -> Iterator[System]:
    with System("host", 2, max_restarts=1000) as system:
        yield system


@pytest.fixture
def deployment(lab: System) -> Iterator[Deployment]:
    models = {"tiny": TextModel(WEIGHTS, BYTES)}
    embedders = {"rows": Embedder.of_tokens(WEIGHTS.embedding, BYTES)}
    with Deployment(lab, models, embedders=embedders, max_active=3) as made:
        yield made


@pytest.fixture
def endpoint(deployment: Deployment) -> Iterator[Endpoint]:
    with serve(deployment) as made:
        yield made


@pytest.fixture
def client(endpoint: Endpoint) -> Iterator[openai.OpenAI]:
    with talking(endpoint) as made:
        yield made


def talking(endpoint: Endpoint, tenant: str = EVERYBODY) -> openai.OpenAI:
    token = endpoint.deployment.accounts[tenant].token
    return openai.OpenAI(base_url=endpoint.url, api_key=token, max_retries=0, timeout=60)


def written(weights: Weights, prompt: bytes, count: int) -> str:
    """Return what plain NumPy writes."""
    return bytes(greedy(weights, list(prompt), count)).decode(errors="replace")


def until(done: Callable[[], bool]) -> None:
    assert settle(done)


def test_answers_are_what_plain_numpy_writes(client: openai.OpenAI) -> None:
    prompt = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    wanted = written(WEIGHTS, prompt.encode(), 12)
    whole = client.chat.completions.create(
        model="tiny", messages=SAID, max_completion_tokens=12, temperature=0
    )
    assert whole.choices[0].message.content == wanted
    assert whole.choices[0].finish_reason == "length"
    assert whole.usage is not None
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (len(prompt), 12)
    chunks = list(
        client.chat.completions.create(
            model="tiny",
            messages=SAID,
            max_tokens=12,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    parts = [one.choices[0].delta.content or "" for one in chunks if one.choices]
    assert "".join(parts) == wanted
    assert sum(map(bool, parts)) > 3
    assert chunks[-2].choices[0].finish_reason == "length"
    assert chunks[-1].usage == whole.usage
    plain = client.completions.create(model="tiny", prompt="abc", max_tokens=9, temperature=0)
    assert plain.choices[0].text == written(WEIGHTS, b"abc", 9)


def test_draws_are_those_of_their_seed_and_stops_end_an_answer(client: openai.OpenAI) -> None:
    def drawn(**options: Any) -> Any:
        made = client.completions.create(model="tiny", prompt="abc", max_tokens=20, **options)
        return made.choices[0]

    first = drawn(seed=1).text
    assert first == drawn(seed=1).text
    assert first != drawn(seed=2).text
    assert drawn(seed=5, top_p=1e-9).text == written(WEIGHTS, b"abc", 20)
    stop = first[4:6]
    ended = drawn(seed=1, stop=[stop])
    assert (ended.text, ended.finish_reason) == (first[: first.index(stop)], "stop")


def test_embeddings_are_means_of_rows(client: openai.OpenAI) -> None:
    found = client.embeddings.create(model="rows", input=["abc", "", "d"])
    wanted = WEIGHTS.embedding[list(b"abc")].mean(axis=0)
    wanted /= np.linalg.norm(wanted)
    np.testing.assert_allclose(found.data[0].embedding, wanted, rtol=1e-5)
    assert not np.any(found.data[1].embedding)
    assert found.usage.prompt_tokens == 4
    same = client.embeddings.create(model="rows", input="abc", encoding_format="float")
    np.testing.assert_allclose(same.data[0].embedding, wanted, rtol=1e-5)
    assert [one.id for one in client.models.list()] == ["tiny", "rows"]
    assert client.models.retrieve("rows").id == "rows"


def test_bad_requests_are_refused_as_openai_does(endpoint: Endpoint, client: openai.OpenAI) -> None:
    good: dict[str, Any] = {"model": "tiny", "messages": SAID}
    wrongs: list[tuple[dict[str, Any], int, str, str | None]] = [
        ({"model": "other"}, 404, "model_not_found", "model"),
        ({"max_tokens": 0}, 400, "invalid_value", "max_tokens"),
        ({"temperature": 3}, 400, "invalid_value", "temperature"),
        ({"n": 2}, 400, "invalid_value", "n"),
        ({"messages": []}, 400, "invalid_value", "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, 400, "invalid_value", None),
        ({"tools": [{}]}, 400, "invalid_value", "tools"),
        ({"stop": ""}, 400, "invalid_value", "stop"),
        ({"max_tokens": 500}, 400, "invalid_value", None),
        (
            {"messages": [{"role": "user", "content": "x" * 300}]},
            400,
            "context_length_exceeded",
            None,
        ),
    ]
    for wrong, status, code, param in wrongs:
        with pytest.raises(openai.APIStatusError) as caught:
            client.chat.completions.create(**(good | wrong))
        assert (caught.value.status_code, caught.value.code) == (status, code), wrong
        if param is not None:
            assert caught.value.param == param
    other = openai.OpenAI(base_url=endpoint.url, api_key="guess", max_retries=0)
    with other, pytest.raises(openai.AuthenticationError, match="no valid token"):
        other.models.list()
    with pytest.raises(openai.BadRequestError, match="is no JSON"):
        client.post("/chat/completions", cast_to=object, content=b"{")
    with pytest.raises(openai.NotFoundError, match="GET /v1/nothing"):
        client.get("/nothing", cast_to=object)


def test_a_stream_goes_on_when_its_device_is_killed(lab: System, client: openai.OpenAI) -> None:
    chunks = client.completions.create(
        model="tiny", prompt="abc", max_tokens=60, temperature=0, stream=True
    )
    parts = [one.choices[0].text for one in islice(chunks, 5)]
    for device in lab.devices:
        lab.inject("kill", device).add_waiter(lambda: None)
    parts += [one.choices[0].text for one in chunks]
    assert "".join(parts) == written(WEIGHTS, b"abc", 60)
    until(lambda: sum(device.generation for device in lab.devices) == 4)


def test_who_goes_away_takes_the_answer_back(deployment: Deployment, client: openai.OpenAI) -> None:
    for stream in (True, False):
        before = deployment.statistics.cancelled
        if stream:
            chunks: Any = client.completions.create(
                model="tiny", prompt="abc", max_tokens=290, stream=True, temperature=0
            )
            next(chunks)
            chunks.close()
        else:
            with pytest.raises(openai.APITimeoutError):
                client.with_options(timeout=0.05).completions.create(
                    model="tiny", prompt="abc", max_tokens=290, temperature=0
                )
        until(lambda before=before: deployment.statistics.cancelled == before + 1)  # type: ignore[misc]
    assert deployment.accounts[EVERYBODY].used < 2 * 293
    until(lambda: deployment.statistics.running == 0)


def test_tenants_have_tokens_and_budgets(lab: System) -> None:
    tenants = {"a": Client(budget=50, token="secret"), "b": Client(weight=2)}  # noqa: S106
    models = {"tiny": TextModel(WEIGHTS, BYTES)}
    with (
        Deployment(lab, models, tenants=tenants) as deployment,
        serve(deployment) as endpoint,
        talking(endpoint, "a") as a,
        talking(endpoint, "b") as b,
    ):
        ask: dict[str, Any] = {"model": "tiny", "prompt": "abc", "max_tokens": 20}
        first = a.completions.create(**ask, stop="\x00never").usage
        assert first is not None
        until(lambda: deployment.accounts["a"].used == first.total_tokens)
        with pytest.raises(openai.RateLimitError) as caught:
            a.completions.create(**(ask | {"max_tokens": 40}))
        assert caught.value.code == "insufficient_quota"
        b.completions.create(**ask)
        deployment.accounts["a"].grant(100)
        a.completions.create(**(ask | {"max_tokens": 40}))
        assert deployment.statistics.more["cost of b"] == 23


def test_a_swap_loses_no_text_and_new_ones_are_the_new_models(
    deployment: Deployment, client: openai.OpenAI
) -> None:
    chunks = client.completions.create(
        model="tiny", prompt="abc", max_tokens=80, temperature=0, stream=True
    )
    parts = [one.choices[0].text for one in islice(chunks, 3)]
    deployment.swap("tiny", TextModel(OTHER, BYTES))
    new = client.completions.create(model="tiny", prompt="abc", max_tokens=9, temperature=0)
    assert new.choices[0].text == written(OTHER, b"abc", 9)
    parts += [one.choices[0].text for one in chunks]
    assert "".join(parts) == written(WEIGHTS, b"abc", 80)
    with pytest.raises(InvalidArgument, match="there is no model 'rows'; there are"):
        deployment.swap("rows", TextModel(OTHER, BYTES))


def test_many_at_once_get_each_its_own(lab: System, client: openai.OpenAI) -> None:
    prompts = [f"text {n}" for n in range(10)]
    found: dict[str, str] = {}

    def one(prompt: str) -> None:
        made = client.completions.create(model="tiny", prompt=prompt, max_tokens=15, temperature=0)
        found[prompt] = made.choices[0].text

    threads = [threading.Thread(target=one, args=(prompt,)) for prompt in prompts]
    for number, thread in enumerate(threads):
        thread.start()
        if number == 5:
            lab.inject("kill").add_waiter(lambda: None)
    for thread in threads:
        thread.join(60)
    assert found == {prompt: written(WEIGHTS, prompt.encode(), 15) for prompt in prompts}


def test_an_endpoint_ends_with_its_system() -> None:
    with System("host", 1) as lab:
        deployment = Deployment(lab, {"tiny": TextModel(WEIGHTS, BYTES)})
        endpoint = serve(deployment)
        assert "127.0.0.1" in endpoint.url
    begin = time.monotonic()
    with talking(endpoint) as client:
        until(lambda: not endpoint._thread.is_alive())
        with pytest.raises(openai.APIConnectionError):
            client.models.list()
    assert time.monotonic() - begin < 30


def test_what_does_not_fit_is_refused(
    lab: System, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = TextModel(WEIGHTS, BYTES)
    with pytest.raises(InvalidArgument, match="a model or an embedder at least"):
        Deployment(lab, {})
    with pytest.raises(InvalidArgument, match="'x' is both"):
        Deployment(lab, {"x": model}, embedders={"x": Embedder(len)})
    with pytest.raises(InvalidArgument, match="two tenants have one token"):
        Deployment(lab, {"x": model}, tenants={one: Client(token="t") for one in "ab"})  # noqa: S106
    with pytest.raises(InvalidArgument, match="no token '<end>'"):
        TextModel(WEIGHTS, BYTES, ends=["<end>"])
    with pytest.raises(InvalidArgument, match="has another model by now"):
        deployment.generate("tiny", model, Generation((1,), 5))
    assert deployment.accounts[EVERYBODY].used == 0
    monkeypatch.setattr(server, "find_spec", {"starlette": 1}.get)
    with pytest.raises(ServingUnavailable, match=r"serving needs uvicorn\. .*\[serving\]"):
        serve(deployment)
