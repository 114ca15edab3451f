"""One text that grows: tokens go in, and the next ones come out."""

from collections.abc import Iterator, Sequence

from accel_lab.blueprints.language.model import LanguageModel
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.attention import KVCache

PAGE_SIZE = 16


class Session:
    """A text in the caches of a model: a `KVCache` for each layer.

    After a fault caches are rebuilt by all messages since they were made, or since `checkpoint()`.

    Parameters:
        tokens: the most that it takes; their memory is taken at once.

    Attributes:
        caches: one for each layer.
        length: tokens appended so far.

    Raises:
        InvalidArgument: the model's context is shorter, or that is no number of tokens.
    """

    def __init__(self, model: LanguageModel, tokens: int) -> None:
        one = model.shape
        if not 1 <= tokens <= one.context:
            text = f"a session of {tokens} tokens; the model takes 1 to {one.context}"
            raise InvalidArgument(text)
        self.model, self.most, self.length = model, tokens, 0
        pages = -(-tokens // PAGE_SIZE)
        self.caches = [
            KVCache(
                model.device,
                heads=one.shared,
                width=one.features,
                pages=pages,
                page_size=PAGE_SIZE,
            )
            for _ in range(one.layers)
        ]

    def append(self, tokens: Sequence[int]) -> AccelRef:
        """Append tokens; return the logits of the one that comes next. Does not wait.

        Raises:
            InvalidArgument: there is none, one is beyond the vocabulary, or there is no room.
        """
        most = self.model.shape.vocabulary
        if wrong := [token for token in tokens if not 0 <= token < most]:
            raise InvalidArgument(
                f"{wrong[0]} is no token; the model has those from 0 to {most - 1}"
            )
        if not tokens or self.length + len(tokens) > self.most:
            text = f"{len(tokens)} tokens after {self.length}; at least 1 is wanted, and in all"
            raise InvalidArgument(f"{text} {self.most} at most")
        logits = self.model.logits(tokens, self.caches, self.length)
        self.length += len(tokens)
        return logits

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
        for reply in [cache.checkpoint() for cache in self.caches]:
            reply.result()

    def free(self) -> None:
        """Give the memory of all pages back; does not block."""
        for cache in self.caches:
            cache.free()
