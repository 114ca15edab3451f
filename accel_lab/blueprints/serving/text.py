"""The text of tokens as they come: whole characters, and nothing from a stop on."""

from collections.abc import Sequence

from accel_lab.blueprints.language import Tokenizer

BROKEN = "\N{REPLACEMENT CHARACTER}"


class Text:
    """Takes tokens, and gives the text that is certain.

    What may be the beginning of a character, or of a stop, is given when more is known.

    Parameters:
        stops: texts, none empty; the answer ends before the first that comes.

    Attributes:
        tokens: how many it took.
        is_stopped: whether a stop came.
    """

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str] = ()) -> None:
        self._tokenizer, self._stops = tokenizer, tuple(stops)
        self._pending: list[int] = []
        self._held = ""
        self.tokens = 0
        self.is_stopped = False

    def take(self, token: int) -> str:
        """Take a token; return the text that is certain now."""
        self.tokens += 1
        if token >= len(self._tokenizer.tokens):
            return ""  # weights may have rows beyond the tokenizer's tokens, which are no text
        self._pending.append(token)
        text = self._tokenizer.decode(self._pending)
        if text.endswith(BROKEN):
            return ""
        self._pending = []
        return self._certain(text, held=self._longest())

    def end(self) -> str:
        """Return the rest."""
        text = self._tokenizer.decode(self._pending)
        self._pending = []
        return self._certain(text, held=0)

    def _longest(self) -> int:
        return max(map(len, self._stops), default=1) - 1

    def _certain(self, text: str, held: int) -> str:
        if self.is_stopped:
            return ""
        whole = self._held + text
        places = [place for stop in self._stops if (place := whole.find(stop)) >= 0]
        if places:
            self.is_stopped, self._held = True, ""
            return whole[: min(places)]
        cut = len(whole) - held
        certain, self._held = whole[: max(cut, 0)], whole[max(cut, 0) :]
        return certain
