"""What is deployed: a language model with its tokenizer, and functions that embed texts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from accel_lab.blueprints.language import Tokenizer, Weights
from accel_lab.blueprints.patterns import Stage
from accel_lab.errors import InvalidArgument

Array: TypeAlias = npt.NDArray[Any]
Turn: TypeAlias = tuple[str, str]
"""Who speaks, and what."""

ENDS = ("<|im_end|>", "<|endoftext|>")


@dataclass(frozen=True)
class Generation:
    """One text to be continued.

    Attributes:
        tokens: of the prompt.
        limit: how many new tokens there are at most.
        temperature: 0 takes the most likely token.
        top_p: only the most likely tokens, which together have this probability, are drawn.
        seed: of the draws; a step that is run again draws the same.
    """

    tokens: tuple[int, ...]
    limit: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0


class TextModel:
    """Weights and the tokenizer that fits to them.

    Parameters:
        weights, tokenizer: as `smollm2()` returns them.
        ends: tokens that end an answer and are not part of it; those that the tokenizer has of
            `<|im_end|>` and `<|endoftext|>` when not given.
        chat: makes tokens of turns, (role, content) each, up to where the answer begins; as ChatML
            when not given.

    Raises:
        InvalidArgument: a tokenizer has more tokens than the weights.
    """

    def __init__(
        self,
        weights: Weights,
        tokenizer: Tokenizer,
        *,
        ends: Sequence[str] | None = None,
        chat: Callable[[Sequence[Turn]], Sequence[int]] | None = None,
    ) -> None:
        weights.require()
        if len(tokenizer.tokens) > weights.shape.vocabulary:
            text = f"the tokenizer has {len(tokenizer.tokens)} tokens, and the weights have"
            raise InvalidArgument(f"{text} {weights.shape.vocabulary}")
        self.weights, self.tokenizer = weights, tokenizer
        known = {token: number for number, token in enumerate(tokenizer.tokens)}
        if missing := [one for one in ends or () if one not in known]:
            raise InvalidArgument(f"ends: the tokenizer has no token {missing[0]!r}")
        self.ends = {known[one] for one in (ENDS if ends is None else ends) if one in known}
        self._chat = chat

    @property
    def context(self) -> int:
        """The most tokens of a prompt and its answer."""
        return self.weights.shape.context

    def prompt(self, turns: Sequence[Turn]) -> tuple[int, ...]:
        """Return the tokens of a conversation, up to where the answer begins."""
        if self._chat is not None:
            return tuple(self._chat(turns))
        mark, plain = self._mark, self.tokenizer.encode
        found: list[int] = []
        for role, content in turns:  # what was written has no marks of its own
            found += [*mark("<|im_start|>"), *plain(f"{role}\n{content}")]
            found += [*mark("<|im_end|>"), *plain("\n")]
        return (*found, *mark("<|im_start|>"), *plain("assistant\n"))

    def _mark(self, mark: str) -> list[int]:
        return self.tokenizer.encode(mark, special=True)


class Embedder:
    """A function that embeds texts, and how their tokens are counted.

    Parameters:
        function: a function or a `@stage`; gets a list of texts, returns a row of numbers for each.
        count: returns how many tokens a text has; its words when not given.
    """

    def __init__(
        self,
        function: Stage | Callable[..., Any],
        count: Callable[[str], int] | None = None,
    ) -> None:
        self.function = function
        self.count = count or (lambda text: len(text.split()))

    @classmethod
    def of_tokens(cls, matrix: Array, tokenizer: Tokenizer) -> "Embedder":
        """Return one that takes the mean of a text's tokens' rows, made as long as 1.

        Parameters:
            matrix: a row for each token, as `weights.embedding`.
        """

        def embed(texts: Sequence[str]) -> Array:
            rows = np.zeros((len(texts), matrix.shape[1]), np.float32)
            for row, text in zip(rows, texts, strict=True):
                if tokens := tokenizer.encode(text):
                    row[:] = matrix[tokens].mean(axis=0)
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
            return rows / np.where(lengths > 0, lengths, 1)

        return cls(embed, lambda text: len(tokenizer.encode(text)))
