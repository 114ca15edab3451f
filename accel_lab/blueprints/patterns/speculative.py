"""Decoding with drafts: a cheap guess of several tokens, and one pass of the model that checks it.

A draft is kept as far as the model would have said the same. With a temperature of 0 that is the
model's own most likely token. Else a draft `d` with probability q(d) is kept with probability
min(1, p(d) / q(d)), and what replaces the first that is not kept is drawn from max(p - q, 0): so
the output is distributed as the model's alone (Leviathan, Kalman and Matias, 2023).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from accel_lab.actor.actor import handles
from accel_lab.actor.letter import Promise
from accel_lab.actor.reply import Reply
from accel_lab.blueprints.patterns.base.calls import Call
from accel_lab.blueprints.patterns.base.errors import stage_failed
from accel_lab.blueprints.patterns.base.pattern import (
    Limits,
    Overflow,
    PatternActor,
    Place,
    Service,
)
from accel_lab.blueprints.patterns.base.record import Record
from accel_lab.blueprints.patterns.base.request import Entry, Infer, Stream
from accel_lab.blueprints.patterns.base.stage import Stage
from accel_lab.compute.message.validation import require_timeout
from accel_lab.errors import InvalidArgument
from accel_lab.pipeline.stage import require_count

Floats = npt.NDArray[np.floating[Any]]
DRAFTS = 4
LIMIT = 256


class Model(Protocol):
    """A language model with a cache of the tokens that it was given; one request's own."""

    @property
    def length(self) -> int:
        """How many tokens are in its cache."""

    def forward(self, tokens: Sequence[int]) -> Floats:
        """Append tokens to the cache; return the logits after each: (tokens, vocabulary)."""

    def rewind(self, length: int) -> None:
        """Forget all but the first `length` tokens."""


class PromptLookup:
    """Drafts what followed the newest tokens where they stood before; needs no model.

    Parameters:
        most, least: how many of the newest tokens are looked for; the longest match counts.
    """

    def __init__(self, most: int = 3, least: int = 1) -> None:
        require_count(least, "least", 1)
        require_count(most, "most", least)
        self._most, self._least = most, least

    def propose(self, tokens: Sequence[int], count: int) -> list[int]:
        """Return so many tokens at most."""
        for size in range(min(self._most, len(tokens) - 1), self._least - 1, -1):
            tail = list(tokens[-size:])
            for start in range(len(tokens) - size - 1, -1, -1):
                if list(tokens[start : start + size]) == tail:
                    return list(tokens[start + size : start + size + count])
        return []


class Decoding:
    """One request: what it was given and has so far. It outlives a fault of its call.

    Attributes:
        parts: the new tokens.
        proposed, accepted: how many drafts there were, and were kept.
        passes: how often the model was run.
        is_over: whether nobody waits any more.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        limit: int,
        temperature: float,
        seed: int | None,
        end: int | None,
    ) -> None:
        self.prompt, self.limit, self.temperature, self.end = list(prompt), limit, temperature, end
        self.random = np.random.default_rng(seed)
        self.parts: list[int] = []
        self.proposed = self.accepted = self.passes = 0
        self.is_over = False
        self.emit: Callable[[list[int]], object] = len

    @property
    def is_done(self) -> bool:
        """Whether it has all its tokens."""
        ended = bool(self.parts) and self.parts[-1] == self.end
        return self.is_over or ended or len(self.parts) >= self.limit


def speculate(model: Model, draft: "Model | PromptLookup", count: int, one: Decoding) -> None:
    """Give a request its tokens, `limit` of them or up to its end.

    Parameters:
        model, draft: with empty caches.
        count: how many tokens are drafted at a time.
    """
    while not one.is_done:
        tokens = one.prompt + one.parts
        # A pass gives one token more than drafts it keeps.
        most = min(count, one.limit - len(one.parts) - 1)
        drafts, guesses = _drafted(draft, tokens, most, one)
        fed = tokens[model.length :] + drafts
        logits = np.asarray(model.forward(fed), np.float64)
        if logits.ndim != 2 or len(logits) != len(fed):  # noqa: PLR2004 - tokens, vocabulary
            raise InvalidArgument(
                f"forward() returns logits of shape ({len(fed)}, vocabulary), not {logits.shape}"
            )
        kept, following = _checked(logits[-len(drafts) - 1 :], drafts, guesses, one)
        new = [*drafts[:kept], following]
        if one.end in new:
            new = new[: new.index(one.end) + 1]
        model.rewind(len(tokens) + kept)
        if not isinstance(draft, PromptLookup):
            draft.rewind(min(draft.length, len(tokens) + kept))
        one.passes += 1
        one.proposed += len(drafts)
        one.accepted += kept
        one.parts += new
        one.emit(new)


def _drafted(
    draft: "Model | PromptLookup", tokens: list[int], most: int, one: Decoding
) -> tuple[list[int], list[Floats | None]]:
    """Return drafts, and the distribution that each was drawn from; None for a certain one."""
    if isinstance(draft, PromptLookup):
        found = draft.propose(tokens, most) if most else []
        return found, [None] * len(found)
    drafts: list[int] = []
    guesses: list[Floats | None] = []
    for _ in range(most):
        fed = (tokens + drafts)[draft.length :]
        guess = np.asarray(draft.forward(fed), np.float64)[-1]
        if one.temperature:
            share = _softmax(guess / one.temperature)
            drafts.append(_draw(share, one))
            guesses.append(share)
        else:
            drafts.append(int(guess.argmax()))
            guesses.append(None)
    return drafts, guesses


def _checked(
    logits: Floats, drafts: list[int], guesses: list[Floats | None], one: Decoding
) -> tuple[int, int]:
    """Return how many drafts are kept, and the token after them."""
    for place, (token, guess) in enumerate(zip(drafts, guesses, strict=True)):
        if not one.temperature:
            best = int(logits[place].argmax())
            if best != token:
                return place, best
            continue
        share = _softmax(logits[place] / one.temperature)
        drawn = 1.0 if guess is None else guess[token]
        if one.random.random() * drawn < share[token]:
            continue
        if guess is None:
            share[token] = 0.0
        else:
            share = np.maximum(share - guess, 0.0)
        return place, _draw(share / share.sum(), one)
    if not one.temperature:
        return len(drafts), int(logits[-1].argmax())
    return len(drafts), _draw(_softmax(logits[-1] / one.temperature), one)


def _softmax(logits: Floats) -> Floats:
    powers: Floats = np.exp(logits - logits.max())
    shares: Floats = powers / powers.sum()
    return shares


def _draw(shares: Floats, one: Decoding) -> int:
    return int(one.random.choice(len(shares), p=shares))


class Speculate(Infer, frozen=True):
    """Decode a prompt of tokens; see `SpeculativeDecoder.ask`."""

    limit: int = LIMIT
    temperature: float = 0.0
    seed: int | None = None


class SpeculativeDecoder(Service):
    """Decodes with drafts: as the model alone would, in fewer of its passes.

    The answer is the list of new tokens. Statistics say how many drafts were kept, and how many
    tokens a pass gave. After a fault a request goes on from the tokens that it has, with new
    caches.

    Parameters:
        place: the system in which it lives, and in whose tree it stands.
        model: returns a `Model` with an empty cache, for one request; weights belong outside of it.
            It is called with a device, where there are some.
        draft: a `PromptLookup`, or what returns a smaller `Model`: of the first layers, say.
        drafts: how many tokens are drafted at a time.
        end: the token that ends an answer, as its last one.
        devices: a device, a list of devices, or a System.
        parallelism, retries: as of a `@stage`.
        capacity, overflow, wait_s, timeout_s: see `Limits`.
        name: in the tree.

    Raises:
        InvalidArgument: an option does not fit.
    """

    kind: ClassVar[str] = "speculative decoding"

    def __init__(
        self,
        place: Place,
        model: Callable[..., Model],
        draft: "PromptLookup | Callable[..., Model] | None" = None,
        *,
        drafts: int = DRAFTS,
        end: int | None = None,
        devices: Any = None,
        parallelism: int | None = None,
        retries: int = 2,
        capacity: int = 1024,
        overflow: Overflow = "reject",
        wait_s: float = 10.0,
        timeout_s: float | None = None,
        name: str = "speculative",
    ) -> None:
        require_count(drafts, "drafts", 0)
        drafter = PromptLookup() if draft is None else draft
        for one in (model, drafter):
            if not isinstance(one, PromptLookup) and not callable(one):
                raise InvalidArgument(f"what returns a model is a function, and {one!r} is none")

        def run(*given: Any) -> Decoding:
            *device, one = given
            guesser = drafter if isinstance(drafter, PromptLookup) else drafter(*device)
            speculate(model(*device), guesser, drafts, one)
            done: Decoding = one
            return done

        stage = Stage(run, devices=devices, parallelism=parallelism, retries=retries, name=name)
        limits = Limits(capacity=capacity, overflow=overflow, wait_s=wait_s, timeout_s=timeout_s)
        make = partial(SpeculativeActor, limits=limits, stage=stage, end=end)
        super().__init__(place, name, make)

    def ask(
        self,
        value: Any,
        *,
        priority: int = 0,
        timeout_s: float | None = None,
        limit: int = LIMIT,
        temperature: float = 0.0,
        seed: int | None = None,
    ) -> Reply[Any]:
        """Send a prompt; the reply is the list of new tokens.

        Parameters:
            value: the prompt's tokens, one at least.
            limit: how many new tokens; exactly so many, unless `end` comes before.
            temperature: 0 takes the most likely token each time.
            seed: of the draws; another one each time when not given.
        """
        made = self._made(value, priority, timeout_s, None, limit, temperature, seed)
        return self._send(made)

    def stream(
        self,
        value: Any,
        *,
        priority: int = 0,
        timeout_s: float | None = None,
        limit: int = LIMIT,
        temperature: float = 0.0,
        seed: int | None = None,
    ) -> Stream:
        """Send a prompt, and return its new tokens as they come."""
        stream = Stream()
        made = self._made(value, priority, timeout_s, stream, limit, temperature, seed)
        stream.follow(self._send(made))
        return stream

    def _made(
        self,
        value: Any,
        priority: int,
        timeout_s: float | None,
        stream: Stream | None,
        limit: int,
        temperature: float,
        seed: int | None,
    ) -> Speculate:
        require_count(limit, "limit", 1)
        if not 0 <= temperature < np.inf:
            raise InvalidArgument(f"temperature is a number from 0 up, not {temperature!r}")
        prompt = [int(token) for token in value]
        if not prompt:
            raise InvalidArgument("a prompt has one token at least, and this one is empty")
        return Speculate(
            prompt, priority, require_timeout(timeout_s), stream, limit, temperature, seed
        )


class SpeculativeActor(PatternActor):
    """Runs each request in a call; a request's note is its `Decoding` and that call."""

    def __init__(self, record: Record, limits: Limits, stage: Stage, end: int | None) -> None:
        super().__init__(record, limits)
        self._stage, self._end = stage, end
        self._proposed = self._accepted = self._passes = self._tokens = 0

    def started(self) -> None:
        """Get ready to call."""
        super().started()
        self._hands = self.calls_of(self._stage)

    @handles(Infer)
    def infer(self, ask: Infer) -> Promise[Any]:
        """Take in one that says nothing but its prompt."""
        return self.speculate(Speculate(ask.value, ask.priority, ask.timeout_s, ask.stream))

    @handles(Speculate)
    def speculate(self, ask: Speculate) -> Promise[Any]:
        """Take a request in."""
        one = Decoding(ask.value, ask.limit, ask.temperature, ask.seed, self._end)
        return self.take_in(ask, [one, None])

    def left(self, entry: Entry) -> None:
        """End its call after the pass that it is in."""
        one, call = entry.note
        one.is_over = True
        call.cancel()

    def advance(self) -> None:
        """Begin what waits."""
        while self.queued and self._hands.has_room:
            entry = self.first
            self.begin(entry)
            self.record.calls += 1
            self.record.members += 1
            one: Decoding = entry.note[0]
            context = self.context
            told = partial(context.run, self, self._told, entry)
            one.emit = partial(context.event_loop.call_soon, told)
            call: Call = self._hands.begin(one, partial(self._done, entry))
            entry.note[1] = call

    def _told(self, entry: Entry, tokens: list[int]) -> None:
        for token in tokens:
            self.push(entry, token)

    def _done(self, entry: Entry, answer: Any, error: BaseException | None, runs: int) -> None:
        del answer  # it is in the note, and whole after a fault, too
        one: Decoding = entry.note[0]
        self._proposed += one.proposed
        self._accepted += one.accepted
        self._passes += one.passes
        self._tokens += len(one.parts)
        if self._passes:
            self.record.more |= {
                "drafts": self._proposed,
                "drafts kept": self._accepted,
                "acceptance": self._accepted / max(1, self._proposed),
                "tokens a pass": self._tokens / self._passes,
            }
        if error is None:
            self.answer(entry, one.parts)
        else:
            name = self.record.name
            self.fail(entry, stage_failed(name, self._stage.name, entry.number, runs, error))
        self.turn()
