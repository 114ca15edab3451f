"""The same Llama in PyTorch, by Hugging Face's Transformers, as users run it: `generate`."""

import time
from typing import Any

import numpy as np

from accel_lab.blueprints.language import Weights


class TransformersPeer:
    """Greedy texts of one model; the key-value cache is Transformers' own, the dtype float32.

    Parameters:
        where: PyTorch's name of the device, `cuda` or `cpu`.
    """

    def __init__(self, weights: Weights, where: str) -> None:
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM

        one = weights.shape
        config = LlamaConfig(
            vocab_size=one.vocabulary,
            hidden_size=one.width,
            intermediate_size=one.hidden,
            num_hidden_layers=one.layers,
            num_attention_heads=one.heads,
            num_key_value_heads=one.shared,
            max_position_embeddings=one.context,
            rms_norm_eps=one.epsilon,
            rope_parameters={"rope_type": "default", "rope_theta": one.base},
            tie_word_embeddings=True,
        )
        with torch.device("meta"):
            model = LlamaForCausalLM(config)
        model = model.to_empty(device="cpu").float()
        missing, unknown = model.load_state_dict(_state(torch, weights), strict=False)
        assert set(missing) <= {"lm_head.weight"}, missing
        assert not unknown, unknown
        model.tie_weights()
        fresh = type(model.model.rotary_emb)(config)  # its angles are no part of a state
        model.model.rotary_emb = fresh
        self._torch, self._where = torch, where
        self._model = model.to(where).eval()

    def tokens(self, prompts: list[list[int]], count: int) -> tuple[list[list[int]], float]:
        """Return what follows each prompt, and the seconds that it took."""
        given = self._torch.tensor(prompts, device=self._where)
        with self._torch.inference_mode():
            begin = time.perf_counter()
            made = self._model.generate(
                given,
                attention_mask=self._torch.ones_like(given),
                max_new_tokens=count,
                min_new_tokens=count,
                do_sample=False,
                pad_token_id=0,
            )
            told = made[:, given.shape[1] :].tolist()
            return told, time.perf_counter() - begin


def _state(torch: Any, weights: Weights) -> dict[str, Any]:
    """Return the weights by Transformers' names."""
    one, state = weights.shape, {"model.embed_tokens.weight": weights.embedding}
    state["model.norm.weight"] = weights.norm
    for number, layer in enumerate(weights.layers):
        at = f"model.layers.{number}"
        state |= {
            f"{at}.input_layernorm.weight": layer.attention_norm,
            f"{at}.self_attn.q_proj.weight": _by_halves(layer.q, one.heads),
            f"{at}.self_attn.k_proj.weight": _by_halves(layer.k, one.shared),
            f"{at}.self_attn.v_proj.weight": layer.v,
            f"{at}.self_attn.o_proj.weight": layer.output,
            f"{at}.post_attention_layernorm.weight": layer.norm,
            f"{at}.mlp.gate_proj.weight": layer.gate,
            f"{at}.mlp.up_proj.weight": layer.up,
            f"{at}.mlp.down_proj.weight": layer.down,
        }
    return {name: torch.tensor(np.ascontiguousarray(array)) for name, array in state.items()}


def _by_halves(matrix: Any, heads: int) -> Any:
    """Return rows with the first features of a head's pairs first, as Transformers has them."""
    rows, width = matrix.shape
    pairs = matrix.reshape(heads, rows // heads // 2, 2, width)
    return pairs.swapaxes(1, 2).reshape(rows, width)
