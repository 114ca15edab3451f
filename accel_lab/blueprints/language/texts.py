"""Several texts that grow side by side: a step is one message for all of them."""

from collections.abc import Iterable, Sequence

from accel_lab.actor.reply import Reply
from accel_lab.blueprints.language.model import LanguageModel
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.attention import KVCache

PAGE_SIZE = 16
"""Tokens of one text that are kept together."""


def pages_of(tokens: int) -> int:
    """Return how many pages a text of so many tokens takes."""
    return -(-tokens // PAGE_SIZE)


class Texts:
    """Texts in the caches of a model, a `KVCache` for each layer, which they share.

    After a fault caches are rebuilt by all messages since they were made, or since `checkpoint()`.

    Parameters:
        pages: how many there are for all texts; a page has `PAGE_SIZE` tokens of one text. Their
            memory is taken at once.

    Attributes:
        caches: one for each layer.
        lengths: how many tokens each text has, by its number.

    Raises:
        InvalidArgument: that is no number of pages.
    """

    def __init__(self, model: LanguageModel, pages: int) -> None:
        one = model.shape
        self.model, self.pages = model, pages
        self.lengths: dict[int, int] = {}
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

    def append(self, numbers: Sequence[int], tokens: Sequence[Sequence[int]]) -> AccelRef:
        """Append tokens to texts; a text begins with its first ones. Does not wait.

        Returns the logits of the tokens that come next, (texts, vocabulary).

        Parameters:
            numbers: the texts, each once; numbers from 0, as you like.
            tokens: as many for each of them.

        Raises:
            InvalidArgument: there is none, one is beyond the vocabulary, there are not as many for
                each, or there is no room.
        """
        shape, counts = self.model.shape, {len(one) for one in tokens}
        if len(counts) != 1 or len(set(numbers)) != len(tokens) or len(numbers) != len(tokens):
            text = f"{len(tokens)} lists of tokens, of {sorted(counts)} each, for texts {numbers}"
            raise InvalidArgument(f"{text}: one list for each text is wanted, all of one length")
        (count,) = counts
        wrong = [one for part in tokens for one in part if not 0 <= one < shape.vocabulary]
        if wrong:
            last = shape.vocabulary - 1
            raise InvalidArgument(f"{wrong[0]} is no token; the model has those from 0 to {last}")
        at = [self.lengths.get(number, 0) for number in numbers]
        if count < 1 or max(at) + count > shape.context:
            text = f"{count} tokens after {max(at)}; at least 1 is wanted, and in all"
            raise InvalidArgument(f"{text} {shape.context} at most")
        lengths = self.lengths | {n: count + had for n, had in zip(numbers, at, strict=True)}
        if (wanted := sum(map(pages_of, lengths.values()))) > self.pages:
            text = f"texts of {sum(lengths.values())} tokens take {wanted} pages of {PAGE_SIZE}"
            raise InvalidArgument(f"{text}; there are {self.pages}: end some, or make more")
        logits = self.model.logits(tokens, self.caches, numbers, at)
        self.lengths = lengths
        return logits

    def end(self, numbers: Iterable[int]) -> None:
        """Forget texts, and have their pages for others; one that is not there is no error."""
        known = [number for number in numbers if number in self.lengths]
        if not known:
            return
        for cache in self.caches:
            cache.evict(known)
        for number in known:
            del self.lengths[number]

    def checkpoint(self) -> list[Reply[None]]:
        """Keep copies of the caches on the host, so that no message before is run again.

        Raises:
            InvalidArgument: the system does not make buffers again (`recover="stale"`).
        """
        return [cache.checkpoint() for cache in self.caches]

    def free(self) -> None:
        """Give the memory of all pages back; does not block."""
        for cache in self.caches:
            cache.free()
