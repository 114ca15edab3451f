"""A step of a decoding server: one more token for each text that is being written."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_lab.blueprints.language import LanguageModel, Texts
from accel_lab.blueprints.language.texts import pages_of
from accel_lab.blueprints.patterns import END
from accel_lab.blueprints.patterns import Sequence as Writing
from accel_lab.blueprints.serving.model import Generation, TextModel
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef


class Steps:
    """A model on a device; called, it gives each text its next token.

    All texts share the caches of one `Texts`, and those that have begun are one batch: their next
    tokens are one step of the model. A text that is not there, as after a fault, is computed anew.
    """

    def __init__(self, model: TextModel, device: Device) -> None:
        self._model = LanguageModel(device, model.weights)
        self._ends = model.ends
        self._texts: Texts | None = None

    def __call__(self, texts: Sequence[Writing]) -> list[Any]:
        """Return the next token of each text, or END."""
        begun = [one for one in texts if self._has(one)]
        pages = sum(pages_of(len(one.value.tokens) + one.limit) for one in texts)
        cached = self._texts
        if cached is None or not begun or pages > cached.pages:
            if cached is not None:
                cached.free()
            most = max(pages, 0 if cached is None else cached.pages)
            cached, begun = Texts(self._model, 1 << (most - 1).bit_length()), []
            self._texts = cached
        there = {one.number for one in begun}
        cached.end(cached.lengths.keys() - there)
        batches = [[one] for one in texts if one.number not in there] + [begun] * bool(begun)
        sent = [self._sent(cached, batch) for batch in batches]
        tokens = {
            one.number: _drawn(one, row)
            for batch, ref in zip(batches, sent, strict=True)
            for one, row in zip(batch, ref.get(), strict=True)
        }
        found = [tokens[one.number] for one in texts]
        return [END if token in self._ends else token for token in found]

    def _has(self, text: Writing) -> bool:
        """Whether the caches have all of a text but its newest token."""
        cached: Texts | None = text.memory.get("texts")
        if cached is None or cached is not self._texts:
            return False
        had: int = len(text.value.tokens) + len(text.parts) - 1
        return cached.lengths.get(text.number) == had

    @staticmethod
    def _sent(cached: Texts, batch: Sequence[Writing]) -> AccelRef:
        tokens = []
        for one in batch:
            if one.number in cached.lengths:
                tokens.append(one.parts[-1:])
            else:
                tokens.append([*one.value.tokens, *one.parts])
                one.memory["texts"] = cached
        logits = cached.append([one.number for one in batch], tokens)
        return logits if any(one.value.temperature for one in batch) else logits.argmax(axis=1)


def _drawn(text: Writing, found: npt.NDArray[Any]) -> int:
    """Return a token: what the device found, or one that is drawn by its logits."""
    asked: Generation = text.value
    if not asked.temperature:
        return int(found.argmax() if found.ndim else found)
    logits = found.astype(np.float64) / asked.temperature
    chances = np.exp(logits - logits.max())
    chances /= chances.sum()
    order = np.argsort(-chances, kind="stable")
    before = np.cumsum(chances[order]) - chances[order]
    kept = order[before < asked.top_p]
    random = np.random.default_rng((asked.seed, len(text.parts)))
    return int(random.choice(kept, p=chances[kept] / chances[kept].sum()))
