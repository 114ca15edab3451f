"""A step of a decoding server: one more token for each text that is being written."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_lab.blueprints.language import LanguageModel, Session
from accel_lab.blueprints.patterns import END
from accel_lab.blueprints.patterns import Sequence as Writing
from accel_lab.blueprints.serving.model import Generation, TextModel
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef


class Steps:
    """A model on a device; called, it gives each text its next token.

    The messages of all texts are sent before the first answer is fetched. A text has a session of
    its own in its memory; one that is not there, as after a fault, is computed anew.
    """

    def __init__(self, model: TextModel, device: Device) -> None:
        self._model = LanguageModel(device, model.weights)
        self._ends = model.ends

    def __call__(self, texts: Sequence[Writing]) -> list[Any]:
        """Return the next token of each text, or END."""
        sent = [self._sent(one) for one in texts]
        found = [_drawn(one, ref.get()) for one, ref in zip(texts, sent, strict=True)]
        return [END if token in self._ends else token for token in found]

    def _sent(self, text: Writing) -> AccelRef:
        asked: Generation = text.value
        session: Session | None = text.memory.get("session")
        if session is None:
            size = len(asked.tokens) + text.limit
            session = text.memory["session"] = Session(self._model, size)
            tokens = [*asked.tokens, *text.parts]
        else:
            tokens = text.parts[-1:]
        logits = session.append(tokens)
        return logits if asked.temperature else logits.argmax()


def _drawn(text: Writing, found: npt.NDArray[Any]) -> int:
    """Return a token: what the device found, or one that is drawn by its logits."""
    asked: Generation = text.value
    if not asked.temperature:
        return int(found)
    logits = found.astype(np.float64) / asked.temperature
    chances = np.exp(logits - logits.max())
    chances /= chances.sum()
    order = np.argsort(-chances, kind="stable")
    before = np.cumsum(chances[order]) - chances[order]
    kept = order[before < asked.top_p]
    random = np.random.default_rng((asked.seed, len(text.parts)))
    return int(random.choice(kept, p=chances[kept] / chances[kept].sum()))
