"""The generations of one model: which serves, which was before, and the way to the next one."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from accel_lab.actor.reply import Reply
from accel_lab.blueprints.patterns import ModelHotSwapServer, Stage, Swapped
from accel_lab.blueprints.patterns.base.equality import equal
from accel_lab.blueprints.patterns.base.request import Infer, Stream
from accel_lab.blueprints.serving.model import Generation, TextModel
from accel_lab.blueprints.serving.replicas import MANY, Draft, Replicas
from accel_lab.system import System

Agree = Callable[[str, str], Any]


class Generations:
    """A `ModelHotSwapServer` over replicas; any thread.

    Attributes:
        serving: the replicas of the generation that serves.
    """

    def __init__(self, lab: System, name: str, serving: Replicas) -> None:
        self.serving = serving
        self._before: Replicas | None = None
        self._lock = threading.Lock()
        self._server = ModelHotSwapServer(lab, _stage(name, serving), capacity=MANY, name=name)

    def hold(self, model: TextModel) -> Replicas | None:
        """Return the replicas of a model, held; None if they serve no more."""
        with self._lock:
            if self.serving.model is not model:
                return None
            self.serving.hold()
            return self.serving

    def write(self, draft: Draft, stream: Stream) -> Stream:
        """Have a stream get the tokens of a text; returns it."""
        stream.follow(self._server.ref.ask(Infer(draft, 0, None, stream)))
        return stream

    def swap(
        self,
        new: Replicas,
        *,
        shadow: float,
        compare: int,
        agree: Agree | None,
        most_differing: float,
    ) -> Swapped:
        """Have other replicas serve; waits. They are closed where that is refused.

        Interrupted, it goes on.
        """
        decoded = new.model.tokenizer.decode
        try:
            new.warm()
            reply = self._server.swap(
                _stage(self._server.name, new),
                warm_up=[Draft(Generation((0,), 1), new)],
                shadow=shadow,
                compare=compare,
                agree=equal if agree is None else lambda a, b: agree(decoded(a), decoded(b)),
                most_differing=most_differing,
            )
        except BaseException:
            new.close()
            raise
        end = partial(self._swapped, new, reply)
        reply.add_waiter(end)
        try:
            return reply.result()
        finally:
            end()

    def _swapped(self, new: Replicas, reply: Reply[Swapped]) -> None:
        """Take in what came of a swap; again and earlier, it does nothing."""
        if not reply.done:
            return
        gone: Replicas | None = new
        with self._lock:
            if new.is_retired or new in (self.serving, self._before):
                return
            if not reply.failed:
                gone, self._before, self.serving = self._before, self.serving, new
        if gone is not None:
            gone.retire()

    def roll_back(self) -> int:
        """Have the generation before serve again; returns its number."""
        number = self._server.roll_back().result()
        with self._lock:
            gone, before = self.serving, self._before
            assert before is not None  # or it would have been refused
            self.serving, self._before = before, None
        gone.retire()
        return number

    def close(self) -> None:
        """End all."""
        self._server.close()
        for one in (self.serving, self._before):
            if one is not None:
                one.close()


def _stage(name: str, replicas: Replicas) -> Stage:
    def write(draft: Draft) -> Stream:
        return draft.written_by(replicas)

    return Stage(write, inline=True, parallelism=MANY, retries=0, name=name)
