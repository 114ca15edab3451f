"""Models that ship inside packages, and files whose kinds are known, for benchmarks.

silero-vad hears whether somebody speaks; magika says of what kind a file is.
"""

import json
from collections.abc import Sequence
from importlib.metadata import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accel_lab import Device, onnx

Array = npt.NDArray[Any]
WINDOW, STATE = 576, 128
"""Samples of sound at 16 kHz that silero-vad takes at a time, and what it remembers of them."""
SIZE, PADDING = 1024, 256
"""So many bytes magika takes of a file's beginning and end; its number for none."""
ENDINGS = {
    ".c": "c",
    ".css": "css",
    ".csv": "csv",
    ".js": "javascript",
    ".json": "json",
    ".md": "markdown",
    ".png": "png",
    ".py": "python",
    ".rst": "rst",
    ".so": "elf",
    ".svg": "svg",
    ".ts": "typescript",
    ".ttf": "ttf",
    ".woff2": "woff2",
}
"""The kinds, as magika calls them, of files that packages are full of."""


def path_of(package: str, name: str) -> Path:
    """Return a file of an installed package.

    Raises:
        PackageNotFoundError: it is not installed.
        FileNotFoundError: it has no such file.
    """
    for one in files(package) or ():
        if one.name == name:
            return Path(str(one.locate()))
    raise FileNotFoundError(f"{package} has no {name}")


class Heard(NamedTuple):
    """A window of sound and what was heard before it: one request to `Silero`."""

    sound: Array
    state: Array


class Silero:
    """silero-vad on a device; called with a list of `Heard`, it gives (speech, state) of each."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._model = onnx.load(path_of("silero-vad", "silero_vad_16k_op15.onnx"), device)

    def __call__(self, windows: Sequence[Heard]) -> list[tuple[float, Array]]:
        """Compute all in one call of the model."""
        sound = np.stack([one.sound for one in windows])
        state = np.stack([one.state for one in windows], axis=1)
        found = self._model.run({"input": sound, "state": state, "sr": np.array(16_000)})
        speech, new = (self._device.get(one) for one in found.values())
        states = new.result().swapaxes(0, 1)
        return [(float(row[0]), one) for row, one in zip(speech.result(), states, strict=True)]


def sounds(count: int) -> list[Heard]:
    """Return so many windows: noise, with a tone in every second one."""
    rng = np.random.default_rng(0)
    made = rng.standard_normal((count, WINDOW)).astype(np.float32) * 0.01
    made[::2] += 0.3 * np.sin(np.arange(WINDOW) * 2 * np.pi * 200 / 16_000).astype(np.float32)
    return [Heard(one, np.zeros((2, STATE), np.float32)) for one in made]


class Magika:
    """magika on a device; called with a list of texts, it gives (kind, confidence) of each."""

    def __init__(self, device: Device) -> None:
        self._model = onnx.load(path_of("magika", "model.onnx"), device)
        config = json.loads(path_of("magika", "config.min.json").read_bytes())
        self._kinds: list[str] = config["target_labels_space"]

    def __call__(self, texts: Sequence[bytes]) -> list[tuple[str, float]]:
        """Compute all in one call of the model."""
        scores = self._model(np.stack([self.taken(one) for one in texts])).get()
        best = scores.argmax(axis=1)
        return [
            (self._kinds[kind], float(row[kind])) for kind, row in zip(best, scores, strict=True)
        ]

    @staticmethod
    def taken(text: bytes) -> Array:
        """Return what the model takes of a file: its beginning and its end, without blanks."""
        taken = np.full(2 * SIZE, PADDING, np.int32)
        block = 4 * SIZE
        first = np.frombuffer(text[:block].lstrip()[:SIZE], np.uint8)
        last = np.frombuffer(text[-block:].rstrip()[-SIZE:], np.uint8)
        taken[: len(first)] = first
        if len(last):
            taken[-len(last) :] = last
        return taken


class Bytes:
    """Knows kinds by how often each byte stands at a file's beginning: a softmax regression.

    Parameters:
        texts, kinds: what it learns from.
    """

    def __init__(self, texts: Sequence[bytes], kinds: Sequence[str]) -> None:
        self._kinds = sorted(set(kinds))
        wanted = np.eye(len(self._kinds))[[self._kinds.index(one) for one in kinds]]
        x = self._features(texts)
        self._weights: Array = np.zeros((x.shape[1], len(self._kinds)))
        for _ in range(600):
            self._weights += 4.0 * x.T @ (wanted - self._chances(x)) / len(x)

    @staticmethod
    def _features(texts: Sequence[bytes]) -> Array:
        counts = [np.bincount(np.frombuffer(one[:SIZE], np.uint8), minlength=256) for one in texts]
        rows = np.sqrt(np.array(counts, dtype=np.float64))
        found: Array = rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-9)
        return found

    def _chances(self, x: Array) -> Array:
        logits = 3.0 * x @ self._weights
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        found: Array = chances / chances.sum(axis=1, keepdims=True)
        return found

    def __call__(self, texts: Sequence[bytes]) -> list[tuple[str, float]]:
        """Return (kind, confidence) of each."""
        chances = self._chances(self._features(texts))
        best = chances.argmax(axis=1)
        return [
            (self._kinds[kind], float(row[kind])) for kind, row in zip(best, chances, strict=True)
        ]


def known_files(folder: Path, each: int) -> tuple[list[bytes], list[str]]:
    """Return texts and kinds of up to `each` files of every kind, drawn with a fixed seed."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in ENDINGS:
            found.setdefault(ENDINGS[path.suffix], []).append(path)
    rng, texts, kinds = np.random.default_rng(0), list[bytes](), list[str]()
    for kind, paths in sorted(found.items()):
        for place in rng.permutation(len(paths)):
            if kinds.count(kind) == each:
                break
            text = paths[place].read_bytes() if paths[place].is_file() else b""
            if len(text) >= 64 and text not in texts:
                texts.append(text)
                kinds.append(kind)
    order = rng.permutation(len(texts))
    return [texts[n] for n in order], [kinds[n] for n in order]
