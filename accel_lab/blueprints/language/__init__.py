"""A language model of our own messages, with the weights of a GGUF file or any others.

    weights, tokenizer = smollm2()
    session = Session(LanguageModel(gpu, weights), 512)
    tokens = session.generate(tokenizer.encode("Once"), 64)

Runs in the notebook's process.
"""

from accel_lab.blueprints.language.gguf import GgufFile as GgufFile
from accel_lab.blueprints.language.model import LanguageModel as LanguageModel
from accel_lab.blueprints.language.package import smollm2 as smollm2
from accel_lab.blueprints.language.session import Session as Session
from accel_lab.blueprints.language.texts import Texts as Texts
from accel_lab.blueprints.language.tokenizer import Tokenizer as Tokenizer
from accel_lab.blueprints.language.weights import LayerWeights as LayerWeights
from accel_lab.blueprints.language.weights import Shape as Shape
from accel_lab.blueprints.language.weights import Weights as Weights
