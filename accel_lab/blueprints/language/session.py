"""One text that grows: tokens go in, and the next ones come out."""

from collections.abc import Iterator, Sequence

from accel_lab.blueprints.language.model import LanguageModel
from accel_lab.blueprints.language.texts import Texts, pages_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument


class Session:
    """A text in the caches of a model: a `KVCache` for each layer.

    After a fault caches are rebuilt by all messages since they were made, or since `checkpoint()`.

    Parameters:
        tokens: the most that it takes; their memory is taken at once.

    Attributes:
        caches: one for each layer.

    Raises:
        InvalidArgument: the model's context is shorter, or that is no number of tokens.
    """

    def __init__(self, model: LanguageModel, tokens: int) -> None:
        one = model.shape
        if not 1 <= tokens <= one.context:
            text = f"a session of {tokens} tokens; the model takes 1 to {one.context}"
            raise InvalidArgument(text)
        self.model, self.most = model, tokens
        self._texts = Texts(model, pages_of(tokens))
        self.caches = self._texts.caches

    @property
    def length(self) -> int:
        """How many tokens were appended so far."""
        return self._texts.lengths.get(0, 0)

    def append(self, tokens: Sequence[int]) -> AccelRef:
        """Append tokens; return the logits of the one that comes next. Does not wait.

        Raises:
            InvalidArgument: there is none, one is beyond the vocabulary, or there is no room.
        """
        if not tokens or self.length + len(tokens) > self.most:
            text = f"{len(tokens)} tokens after {self.length}; at least 1 is wanted, and in all"
            raise InvalidArgument(f"{text} {self.most} at most")
        return self._texts.append([0], [tokens])[0]

    def generate(self, tokens: Sequence[int], limit: int) -> Iterator[int]:
        """Append tokens, and give the most likely one to come next, so many times.

        Each is appended when the next one is asked for; so the last one is not. Waits for each.

        Raises:
            InvalidArgument: as `append`.
        """
        for _ in range(limit):
            found = int(self.append(tokens).argmax())
            yield found
            tokens = [found]

    def checkpoint(self) -> None:
        """Keep copies of the caches on the host, so that no message before is run again. Waits.

        Raises:
            InvalidArgument: the system does not make buffers again (`recover="stale"`).
        """
        for reply in self._texts.checkpoint():
            reply.result()

    def free(self) -> None:
        """Give the memory of all pages back; does not block."""
        self._texts.free()
