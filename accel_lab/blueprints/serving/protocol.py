"""What OpenAI's clients send, and how they are told what is wrong."""

import re
from typing import Annotated, Any, Literal

import msgspec

from accel_lab.blueprints.patterns import NoReplica, RequestExpired
from accel_lab.blueprints.patterns.base.errors import cause_of
from accel_lab.blueprints.serving.errors import BudgetSpent
from accel_lab.errors import AccelError, ActorStopped, CircuitOpen, InvalidArgument, QueueFull

Zero = Annotated[float, msgspec.Meta(ge=0, le=0)]
Stop = Annotated[str, msgspec.Meta(min_length=1)]


class Part(msgspec.Struct, forbid_unknown_fields=True):
    """A part of what was said; text alone."""

    text: str
    type: Literal["text"] = "text"


class Said(msgspec.Struct, forbid_unknown_fields=True):
    """One turn of a conversation."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[Part]
    name: str | None = None

    @property
    def text(self) -> str:
        """What was said."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content)


class StreamOptions(msgspec.Struct, forbid_unknown_fields=True):
    """What a stream has besides."""

    include_usage: bool = False


class Asked(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What both kinds of completion take; what is not here is refused by name."""

    model: str
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    seed: int | None = None
    stop: Stop | Annotated[list[Stop], msgspec.Meta(max_length=4)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    n: Literal[1] | None = None
    presence_penalty: Zero | None = None
    frequency_penalty: Zero | None = None
    user: str | None = None

    @property
    def stops(self) -> list[str]:
        """The texts before which an answer ends."""
        return [self.stop] if isinstance(self.stop, str) else self.stop or []


class Chat(Asked, kw_only=True):
    """The body of /v1/chat/completions."""

    messages: Annotated[list[Said], msgspec.Meta(min_length=1)]
    max_completion_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None


class Completion(Asked, kw_only=True):
    """The body of /v1/completions."""

    prompt: str


class Embeddings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of /v1/embeddings."""

    model: str
    input: str | Annotated[list[str], msgspec.Meta(min_length=1, max_length=2048)]
    encoding_format: Literal["float", "base64"] | None = None
    user: str | None = None


class Refusal(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, text: str, code: str, param: str | None = None) -> None:
        super().__init__(text)
        self.status, self.code, self.param = status, code, param

    @property
    def body(self) -> dict[str, Any]:
        """As OpenAI writes it."""
        kinds = {401: "authentication_error", 429: "rate_limit_error"}
        server = 500
        kind = "server_error" if self.status >= server else "invalid_request_error"
        kind = kinds.get(self.status, kind)
        told = {"message": str(self), "type": kind, "param": self.param, "code": self.code}
        return {"error": told}


def refusal(error: Exception) -> Refusal:
    """Return how a client is told of an error."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, msgspec.ValidationError):
        found = re.search(r"`\$\.?([^`]*)`$|field `([^`]*)`", str(error))
        param = found and (found[1] or found[2])
        return Refusal(400, str(error), "invalid_value", param or None)
    if isinstance(error, msgspec.DecodeError | UnicodeDecodeError):
        return Refusal(400, f"the body is no JSON: {error}", "invalid_json")
    known: tuple[tuple[type[AccelError], int, str], ...] = (
        (BudgetSpent, 429, "insufficient_quota"),
        (QueueFull, 429, "rate_limit_exceeded"),
        (InvalidArgument, 400, "invalid_value"),
        (RequestExpired, 504, "timeout"),
        (ActorStopped, 503, "unavailable"),
    )
    for kind, status, code in known:
        if isinstance(error, kind):
            return Refusal(status, str(error), code)
    if isinstance(first := cause_of(error), NoReplica | CircuitOpen):
        return Refusal(503, str(first), "unavailable")
    return Refusal(500, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}", "failed")
