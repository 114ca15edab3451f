"""Import a language model, its weights and its tokenizer.

from accel_lab.prelude.language import *
"""

from accel_lab.blueprints.language import (
    GgufFile,
    LanguageModel,
    Session,
    Tokenizer,
    smollm2,
)

__all__ = [
    "GgufFile",
    "LanguageModel",
    "Session",
    "Tokenizer",
    "smollm2",
]
