"""A deployment as OpenAI's HTTP interface: a Starlette application."""

import asyncio
import base64
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import msgspec
import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from accel_lab.blueprints.serving.deployment import Answer, Deployment
from accel_lab.blueprints.serving.model import Generation, TextModel
from accel_lab.blueprints.serving.protocol import (
    Asked,
    Chat,
    Completion,
    Embeddings,
    Refusal,
    refusal,
)

T = TypeVar("T")
MOST_BYTES = 4 << 20
"""Of a request's body."""


def application(deployment: Deployment) -> Starlette:
    """Return the application."""
    web = Web(deployment)
    handlers = {
        "/v1/chat/completions": ("POST", web.chat),
        "/v1/completions": ("POST", web.complete),
        "/v1/embeddings": ("POST", web.embed),
        "/v1/models": ("GET", web.models),
        "/v1/models/{name:path}": ("GET", web.model),
    }
    routes = [
        Route(path, partial(_guarded, handler), methods=[method])
        for path, (method, handler) in handlers.items()
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _unknown})


async def _guarded(handler: Callable[[Request], Awaitable[Response]], request: Request) -> Response:
    try:
        return await handler(request)
    except Exception as error:  # noqa: BLE001 - the client is told
        return _told(refusal(error))


async def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = f"{request.method} {request.url.path}: {error.detail}"
    return _told(Refusal(error.status_code, text, "unknown_url"))


def _told(error: Refusal) -> Response:
    return JSONResponse(error.body, error.status)


class Web:
    """The handlers."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._since = int(time.time())

    async def models(self, request: Request) -> Response:
        """List what there is."""
        self._tenant(request)
        data = [self._described(name) for name in self._deployment.models]
        return JSONResponse({"object": "list", "data": data})

    async def model(self, request: Request) -> Response:
        """Describe one."""
        self._tenant(request)
        name = request.path_params["name"]
        if name not in self._deployment.models:
            raise self._no_model(name)
        return JSONResponse(self._described(name))

    async def chat(self, request: Request) -> Response:
        """Continue a conversation."""
        tenant = self._tenant(request)
        asked = msgspec.json.decode(await _body(request), type=Chat)
        model = self._model(asked.model)
        tokens = model.prompt([(one.role, one.text) for one in asked.messages])
        answer = self._begun(tenant, asked, model, tokens, asked.max_completion_tokens)
        return await self._answered(request, asked, answer, ChatShape(asked.model))

    async def complete(self, request: Request) -> Response:
        """Continue a text."""
        tenant = self._tenant(request)
        asked = msgspec.json.decode(await _body(request), type=Completion)
        model = self._model(asked.model)
        tokens = tuple(model.tokenizer.encode(asked.prompt))
        answer = self._begun(tenant, asked, model, tokens, None)
        return await self._answered(request, asked, answer, Shape(asked.model))

    async def embed(self, request: Request) -> Response:
        """Embed texts."""
        tenant = self._tenant(request)
        asked = msgspec.json.decode(await _body(request), type=Embeddings)
        if not self._deployment.has_embedder(asked.model):
            raise self._no_model(asked.model)
        texts = [asked.input] if isinstance(asked.input, str) else asked.input
        work = self._deployment.embed(asked.model, texts, tenant)
        rows, tokens = await _unless_gone(request, work)
        data = [
            {"object": "embedding", "index": at, "embedding": _row(row, asked.encoding_format)}
            for at, row in enumerate(rows)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        whole = {"object": "list", "data": data, "model": asked.model, "usage": usage}
        return JSONResponse(whole)

    def _tenant(self, request: Request) -> str:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        found = [
            name
            for name, one in self._deployment.accounts.items()
            if secrets.compare_digest(token.encode(), one.token.encode())
        ]
        if scheme.lower() != "bearer" or not found:
            text = "no valid token: send the header Authorization: Bearer, with a tenant's token"
            raise Refusal(401, text, "invalid_api_key")
        return found[0]

    def _no_model(self, name: str) -> Refusal:
        text = f"there is no model {name!r} for this; there are {self._deployment.models}"
        return Refusal(404, text, "model_not_found", "model")

    def _model(self, name: str) -> TextModel:
        found = self._deployment.model(name)
        if found is None:
            raise self._no_model(name)
        return found

    def _described(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self._since, "owned_by": "accel_lab"}

    def _begun(
        self,
        tenant: str,
        asked: Asked,
        model: TextModel,
        tokens: tuple[int, ...],
        limit: int | None,
    ) -> Answer:
        room = model.context - len(tokens)
        if room < 1:
            text = f"the prompt has {len(tokens)} tokens; {asked.model} takes {model.context}"
            raise Refusal(400, f"{text} with the answer", "context_length_exceeded")
        given = limit or asked.max_tokens
        generation = Generation(
            tokens,
            min(room, self._deployment.limit) if given is None else given,
            1.0 if asked.temperature is None else asked.temperature,
            1.0 if asked.top_p is None else asked.top_p,
            secrets.randbits(63) if asked.seed is None else asked.seed % (1 << 64),
        )
        deployment = self._deployment
        return deployment.generate(asked.model, model, generation, tenant=tenant, stops=asked.stops)

    async def _answered(
        self, request: Request, asked: Asked, answer: Answer, shape: "Shape"
    ) -> Response:
        parts = answer.parts()
        if not asked.stream:
            text = await _unless_gone(request, _joined(parts))
            return JSONResponse(shape.whole(text, answer))
        first = await _unless_gone(request, anext(parts, None))  # a refusal has a status of its own
        usage = asked.stream_options is not None and asked.stream_options.include_usage
        lines = _lines(first, parts, answer, shape, usage=usage)
        return StreamingResponse(lines, media_type="text/event-stream")


class Shape:
    """How a completion is written."""

    kind, stream_kind = "text_completion", "text_completion"

    def __init__(self, model: str) -> None:
        prefix = self.kind.replace(".", "").removeprefix("text_")[:4]
        self._told = {
            "id": f"{prefix}-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model,
        }

    def choice(self, text: str, finish: str | None) -> dict[str, Any]:
        """Return the answer."""
        return {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}

    def part(self, text: str, finish: str | None) -> dict[str, Any]:
        """Return a part of the answer."""
        return self.choice(text, finish)

    def whole(self, text: str, answer: Answer) -> dict[str, Any]:
        """Return all."""
        choices = [self.choice(text, answer.finish)]
        return self._told | {"object": self.kind, "choices": choices, "usage": _usage(answer)}

    def chunk(self, *choices: dict[str, Any], **other: Any) -> dict[str, Any]:
        """Return a part of a stream."""
        return self._told | {"object": self.stream_kind, "choices": list(choices)} | other


class ChatShape(Shape):
    """How an answer in a conversation is written."""

    kind, stream_kind = "chat.completion", "chat.completion.chunk"

    def choice(self, text: str, finish: str | None) -> dict[str, Any]:
        """Return the answer."""
        message = {"role": "assistant", "content": text}
        return {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}

    def part(self, text: str, finish: str | None) -> dict[str, Any]:
        """Return a part of the answer."""
        delta = {"role": "assistant", "content": text} if text else {}
        return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


async def _joined(parts: AsyncIterator[str]) -> str:
    return "".join([part async for part in parts])


async def _lines(
    first: str | None, parts: Any, answer: Answer, shape: Shape, *, usage: bool
) -> AsyncIterator[bytes]:
    """Yield the events of a stream; the answer is taken back where nobody reads on."""
    try:
        if first is not None:
            yield _event(shape.chunk(shape.part(first, None)))
        async for part in parts:
            yield _event(shape.chunk(shape.part(part, None)))
        yield _event(shape.chunk(shape.part("", answer.finish)))
        if usage:
            yield _event(shape.chunk(usage=_usage(answer)))
        yield b"data: [DONE]\n\n"
    except Exception as error:  # noqa: BLE001 - the client is told in the stream
        yield _event(refusal(error).body)
    finally:
        await parts.aclose()


def _event(whole: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(whole) + b"\n\n"


def _usage(answer: Answer) -> dict[str, int]:
    prompt, made = answer.prompt_tokens, answer.completion_tokens
    return {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made}


def _row(row: Any, encoding: str | None) -> Any:
    numbers = np.asarray(row, "<f4")
    if encoding == "base64":
        return base64.b64encode(numbers.tobytes()).decode()
    return numbers.tolist()


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise Refusal(413, f"the body is larger than {MOST_BYTES} bytes", "too_large")
    return bytes(body)


async def _unless_gone(request: Request, work: Awaitable[T]) -> T:
    """Wait for an answer, and take it back if the client goes away."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Refusal(499, "the client went away", "gone")
        return task.result()
    finally:
        for one in (task, gone):
            one.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
