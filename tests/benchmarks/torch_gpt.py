"""The model of `train.GPT` in plain PyTorch."""

from typing import Any

from accel_lab.blueprints import train


def torch_logits(torch: Any, model: train.GPT, p: Any, tokens: Any) -> Any:
    """Return the logits as PyTorch's own layers have them, of parameters by our names."""
    functional = torch.nn.functional
    batch, places = tokens.shape
    width, heads = model.width, model.heads

    def norm(x: Any, name: str) -> Any:
        return functional.layer_norm(x, (width,), p[name], p[f"{name}_bias"])

    def linear(x: Any, name: str) -> Any:
        return functional.linear(x, p[name], p[f"{name}_bias"])

    x = functional.embedding(tokens, p["tokens"]) + p["places"][:places]
    for at in range(model.blocks):
        q, k, v = linear(norm(x, f"{at}.norm1"), f"{at}.qkv").split(width, -1)
        q, k, v = (one.view(batch, places, heads, -1).transpose(1, 2) for one in (q, k, v))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(attended.transpose(1, 2).reshape(x.shape), f"{at}.out")
        hidden = functional.gelu(linear(norm(x, f"{at}.norm2"), f"{at}.up"))
        x = x + linear(hidden, f"{at}.down")
    return functional.linear(norm(x, "norm"), p["tokens"])
