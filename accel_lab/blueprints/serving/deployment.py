"""Models, their replicas, tenants and budgets as one thing that is served."""

import math
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from accel_lab.blueprints.patterns import (
    DynamicBatchingServer,
    FairShareScheduler,
    Stage,
    Statistics,
    Swapped,
)
from accel_lab.blueprints.patterns.base.request import Stream
from accel_lab.blueprints.serving.generations import Agree, Generations
from accel_lab.blueprints.serving.model import Embedder, Generation, TextModel
from accel_lab.blueprints.serving.replicas import Draft, Replicas
from accel_lab.blueprints.serving.tenants import Account, Client
from accel_lab.blueprints.serving.text import Text
from accel_lab.compute.device import Device
from accel_lab.compute.message.validation import require_timeout
from accel_lab.errors import InvalidArgument
from accel_lab.pipeline.stage import require_count
from accel_lab.system import System
from accel_lab.uncopied import Uncopied

EVERYBODY = "everybody"
"""The tenant of a deployment that names none."""


class Counted(Stream):
    """A stream that knows how many parts it had."""

    parts = 0

    def push(self, part: Any) -> None:
        """Hand on a part."""
        self.parts += 1
        super().push(part)


class Job:
    """A text that a tenant wants."""

    def __init__(self, draft: Draft, generations: Generations, account: Account) -> None:
        self.draft, self._generations, self._account = draft, generations, account
        self._stream = Counted()
        self._lock, self._over = threading.Lock(), False

    def begin(self) -> Stream:
        """Return its tokens as they come."""
        return self._generations.write(self.draft, self._stream)

    def end(self) -> None:
        """Give back what it holds; a second call is fine."""
        with self._lock:
            over, self._over = self._over, True
        if not over:
            self._account.give_back(self.draft.asked.limit - self._stream.parts)
            self.draft.home.let_go()


class Answer:
    """A text while it is being written.

    Attributes:
        prompt_tokens: how many there were.
        finish: "stop" or "length" at its end.
    """

    def __init__(self, asked: Generation, stream: Stream, text: Text) -> None:
        self.prompt_tokens, self._limit = len(asked.tokens), asked.limit
        self._stream, self._text = stream, text
        self.finish: str | None = None

    @property
    def completion_tokens(self) -> int:
        """How many tokens came."""
        return self._text.tokens

    async def parts(self) -> AsyncIterator[str]:
        """Yield its text as it comes; closed before its end, it is taken back."""
        text = self._text
        try:
            async for token in self._stream:
                if part := text.take(token):
                    yield part
                if text.is_stopped:
                    break
            if part := text.end():
                yield part
            ended = text.is_stopped or text.tokens < self._limit
            self.finish = "stop" if ended else "length"
        finally:
            self._stream.cancel()


class Embedding(NamedTuple):
    """An embedder that runs."""

    embedder: Embedder
    server: DynamicBatchingServer


class Deployment(Uncopied):
    """Language models and embedders for several tenants, on the devices of a system.

    Each model is a `ModelHotSwapServer` over a `ModelReplicaPool` of replicas, a `DecodingServer`
    each, which write up to `max_active` texts at once. A slow or dead replica is avoided; a text of
    which nothing was told is sent once more, to another one. Tenants share them by weight, by the
    tokens that they ask for. `serve(deployment)` opens it to OpenAI's clients.

    Parameters:
        lab: the system; all of it ends with that.
        models: by the names that clients use.
        embedders: by their names, too.
        tenants: a weight, or a `Client`, by name; one, `everybody`, when not given.
        replicas: of each model; one for each device when not given.
        max_active: how many texts a replica writes at once.
        limit: how many tokens an answer has at most that does not say.
        patience_s: how long a text may be without a token before another replica gets it, too; None
            for ever.
        capacity: how many requests may wait.
        timeout_s: how long a request may take; None for as long as it does.
        name: in the tree.

    Attributes:
        accounts: of the tenants, by name: their tokens, what they used, what is left.

    Raises:
        InvalidArgument: an option does not fit.
    """

    _instead = "it is one; send it requests from here"

    def __init__(
        self,
        lab: System,
        models: Mapping[str, TextModel],
        *,
        embedders: Mapping[str, Embedder] | None = None,
        tenants: Mapping[str, float | Client] | None = None,
        replicas: int | None = None,
        max_active: int = 8,
        limit: int = 256,
        patience_s: float | None = None,
        capacity: int = 1024,
        timeout_s: float | None = None,
        name: str = "deployment",
    ) -> None:
        embedders = embedders or {}
        if twice := set(models) & set(embedders):
            raise InvalidArgument(f"{min(twice)!r} is both a model and an embedder")
        if not models and not embedders:
            raise InvalidArgument("a deployment has a model or an embedder at least")
        count = len(lab.devices) if replicas is None else replicas
        for value, what in ((count, "replicas"), (max_active, "max_active"), (limit, "limit")):
            require_count(value, what, 1)
        known = {
            one: what if isinstance(what, Client) else Client(weight=what)
            for one, what in (tenants or {EVERYBODY: 1.0}).items()
        }
        self.lab, self.name, self.limit, self.max_active = lab, name, limit, max_active
        self.accounts = {one: Account(one, client) for one, client in known.items()}
        if len({account.token for account in self.accounts.values()}) < len(self.accounts):
            raise InvalidArgument("two tenants have one token")
        self._patience_s = require_timeout(patience_s, "patience_s")
        devices: list[Device] = [lab.devices[n % len(lab.devices)] for n in range(count)]
        self._devices = devices
        self._models: dict[str, Generations] = {}
        self._embeddings: dict[str, Embedding] = {}
        places = max(1, count * max_active * len(models))
        self._share = FairShareScheduler(
            lab,
            Stage(Job.begin, parallelism=places, retries=0, inline=True, name="write"),
            known,
            capacity=capacity,
            timeout_s=timeout_s,
            name=name,
        )
        for one, model in models.items():
            self._models[one] = Generations(lab, one, self._replicas(one, model))
        for one, embedder in embedders.items():
            server = DynamicBatchingServer(lab, embedder.function, name=one, timeout_s=timeout_s)
            self._embeddings[one] = Embedding(embedder, server)

    def _replicas(self, name: str, model: TextModel) -> Replicas:
        options = self._devices, self.max_active, self._patience_s
        return Replicas(self.lab, name, model, *options)

    @property
    def models(self) -> list[str]:
        """The names of all models and embedders."""
        return [*self._models, *self._embeddings]

    @property
    def statistics(self) -> Statistics:
        """What it has done for all tenants, embeddings apart; any thread."""
        return self._share.statistics

    def model(self, name: str) -> TextModel | None:
        """Return the model that has a name now; None if there is none."""
        found = self._models.get(name)
        return None if found is None else found.serving.model

    def generate(
        self,
        name: str,
        model: TextModel,
        asked: Generation,
        *,
        tenant: str = EVERYBODY,
        stops: Sequence[str] = (),
    ) -> Answer:
        """Have a text written; does not wait.

        Parameters:
            model: the one for which its tokens were made, as `model(name)` returned it.

        Raises:
            InvalidArgument: it does not fit into the model's context, or the name has another
                model by now.
            BudgetSpent: the tenant has not so many tokens left.
        """
        whole = len(asked.tokens) + asked.limit
        if not asked.tokens or whole > model.context:
            text = f"a prompt of {len(asked.tokens)} tokens and an answer of up to {asked.limit}"
            raise InvalidArgument(f"{text}; {name} takes 1 to {model.context} together")
        account = self.accounts[tenant]
        account.take(whole)
        home = self._models[name].hold(model)
        if home is None:
            account.give_back(whole)
            raise InvalidArgument(f"{name} has another model by now; ask again")
        job = Job(Draft(asked, home), self._models[name], account)
        try:
            stream = self._share.stream(job, tenant=tenant, cost=float(whole))
        except BaseException:
            job.end()
            raise
        stream.reply.add_waiter(job.end)
        return Answer(asked, stream, Text(model.tokenizer, stops))

    async def embed(self, name: str, texts: Sequence[str], tenant: str) -> tuple[list[Any], int]:
        """Return a row for each text, and how many tokens they have.

        Raises:
            BudgetSpent: the tenant has not so many tokens left.
        """
        embedder, server = self._embeddings[name]
        tokens = sum(map(embedder.count, texts))
        self.accounts[tenant].take(tokens)
        replies = [server.ask(text) for text in texts]
        try:
            return [await reply for reply in replies], tokens
        except BaseException:
            self.accounts[tenant].give_back(tokens)
            for reply in replies:
                reply.cancel()
            raise

    def has_embedder(self, name: str) -> bool:
        """Whether there is an embedder of this name."""
        return name in self._embeddings

    def swap(
        self,
        name: str,
        model: TextModel,
        *,
        shadow: float = 0.0,
        compare: int = 0,
        agree: Agree | None = None,
        most_differing: float = 0.0,
    ) -> Swapped:
        """Load another model beside the one of this name, and have it serve; waits until it does.

        Texts that have begun are finished by the old one, and those that wait if the new one has
        another tokenizer or too short a context. The old one stays loaded for `roll_back`, until
        the next swap.

        Parameters:
            shadow: which share of texts, from 0 to 1, the new one writes, too, for comparison.
            compare: how many are compared before it serves.
            agree: `agree(old, new)` says whether two texts are alike; equal tokens are when not
                given.
            most_differing: which share of them may differ.

        Raises:
            InvalidArgument: there is no model of this name, it is being swapped, or an option does
                not fit.
            SwapRefused: the new one failed, or differs too often; the old one serves on.
            AccelError: the new one cannot write; the old one serves on.
        """
        generations = self._generations(name)
        if shadow and not model.tokenizer.reads(generations.serving.model.tokenizer):
            raise InvalidArgument(f"shadow= compares tokens, and {name} has another tokenizer")
        return generations.swap(
            self._replicas(name, model),
            shadow=shadow,
            compare=compare,
            agree=agree,
            most_differing=most_differing,
        )

    def roll_back(self, name: str) -> int:
        """Have the model before the last swap serve again, at once; returns its generation.

        Raises:
            InvalidArgument: there is none before, or a swap is under way.
        """
        return self._generations(name).roll_back()

    def _generations(self, name: str) -> Generations:
        if name not in self._models:
            raise InvalidArgument(f"there is no model {name!r}; there are {[*self._models]}")
        return self._models[name]

    def close(self) -> None:
        """End it; what it holds fails with ActorStopped. Safe to repeat."""
        self._share.close()
        for generations in self._models.values():
            generations.close()
        for _, server in self._embeddings.values():
            server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        rows = [
            f"  {one.name}: {one.used:,} tokens, {_left(one)}" for one in self.accounts.values()
        ]
        return "\n".join([f"{self.name}: {', '.join(self.models)}", *rows])


def _left(account: Account) -> str:
    left = math.inf if account.left is None else account.left
    return "no limit" if left == math.inf else f"{left:,} left"
