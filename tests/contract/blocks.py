"""A transformer block and a residual block of our messages alone: the loss and all gradients."""

from accel_lab import AccelRef, attention, dnn


def learned(
    p: dict[str, AccelRef], x: AccelRef, labels: AccelRef, heads: int
) -> tuple[AccelRef, dict[str, AccelRef]]:
    """Return the loss of a batch, and its gradients by all parameters.

    Parameters:
        x: (batch * tokens, features).
        labels: one for each text.
    """
    (tokens, width), batch = p["place"].shape, labels.shape[0]

    def split(x: AccelRef) -> AccelRef:
        return x.reshape(batch, tokens, heads, width // heads).transpose(0, 2, 1, 3)

    def joined(x: AccelRef) -> AccelRef:
        return x.transpose(0, 2, 1, 3).reshape(batch * tokens, width)

    embedded = (x @ p["embed"]).reshape(batch, tokens, width) + p["place"]
    h0 = embedded.reshape(batch * tokens, width)
    n1 = dnn.layer_norm(h0, p["scale1"], p["bias1"])
    q, k, v = (split(n1 @ p[name]) for name in ("to_q", "to_k", "to_v"))
    y, lse = attention.attend(q, k, v, causal="top_left", lse=True)
    assert lse is not None
    mixed = joined(y)
    h1 = h0 + mixed @ p["mix"]
    n2 = dnn.layer_norm(h1, p["scale2"], p["bias2"])
    up = n2 @ p["up"]
    wide = dnn.gelu(up)
    h2 = h1 + wide @ p["down"]
    pooled = h2.reshape(batch, tokens, width).mean(axis=1)
    logits = pooled @ p["head"]
    loss = dnn.cross_entropy(logits, labels)

    dlogits = dnn.cross_entropy_gradient(logits, labels, loss * 0 + 1)
    dpooled = dlogits @ p["head"].T / tokens
    shared = embedded * 0 + dpooled.reshape(batch, 1, width)
    dh2 = shared.reshape(batch * tokens, width)
    dup = dnn.activate_gradient(up, dh2 @ p["down"].T, "gelu")
    norm2 = dnn.layer_norm_gradient(h1, dup @ p["up"].T, p["scale2"])
    dh1 = dh2 + norm2.x
    dy = split(dh1 @ p["mix"].T)
    dq, dk, dv = map(joined, attention.attend_gradient(q, k, v, y, lse, dy, causal="top_left")[:3])
    dn1 = dq @ p["to_q"].T + dk @ p["to_k"].T + dv @ p["to_v"].T
    norm1 = dnn.layer_norm_gradient(h0, dn1, p["scale1"])
    dh0 = dh1 + norm1.x
    return loss, {
        "embed": x.T @ dh0,
        "place": dh0.reshape(batch, tokens, width).sum(axis=0),
        "scale1": norm1.scale,
        "bias1": norm1.bias,
        "to_q": n1.T @ dq,
        "to_k": n1.T @ dk,
        "to_v": n1.T @ dv,
        "mix": mixed.T @ dh1,
        "scale2": norm2.scale,
        "bias2": norm2.bias,
        "up": n2.T @ dup,
        "down": wide.T @ dh2,
        "head": pooled.T @ dlogits,
    }


def learned_by_residuals(
    p: dict[str, AccelRef], x: AccelRef, labels: AccelRef
) -> tuple[AccelRef, dict[str, AccelRef]]:
    """Return the loss of a batch, and its gradients by all parameters.

    K. He et al., "Deep Residual Learning for Image Recognition", 2016, figure 2.

    Parameters:
        x: (batch, channels of images, height, width).
        labels: one for each image.
    """
    batch, _, *extents = x.shape
    area = extents[0] * extents[1]

    def normal(c: AccelRef, number: int) -> AccelRef:
        begin = p["begin"]  # of the running statistics, which nothing here reads
        return dnn.batch_norm(c, p[f"scale{number}"], p[f"bias{number}"], begin, begin).y

    c0 = dnn.conv(x, p["stem"], padding=1)
    h0 = dnn.relu(c0)
    c1 = dnn.conv(h0, p["conv1"], padding=1)
    n1 = normal(c1, 1)
    a1 = dnn.relu(n1)
    c2 = dnn.conv(a1, p["conv2"], padding=1)
    h1 = normal(c2, 2) + h0
    h2 = dnn.relu(h1)
    pooled = h2.mean(axis=(2, 3))
    logits = pooled @ p["head"]
    loss = dnn.cross_entropy(logits, labels)

    dlogits = dnn.cross_entropy_gradient(logits, labels, loss * 0 + 1)
    spread = (dlogits @ p["head"].T / area).reshape(batch, -1, 1, 1)
    dh1 = dnn.activate_gradient(h1, h2 * 0 + spread, "relu")
    norm2 = dnn.batch_norm_gradient(c2, dh1, p["scale2"])
    da1 = dnn.conv_data_gradient(norm2.x, p["conv2"], extents, padding=1)
    norm1 = dnn.batch_norm_gradient(c1, dnn.activate_gradient(n1, da1, "relu"), p["scale1"])
    dh0 = dnn.conv_data_gradient(norm1.x, p["conv1"], extents, padding=1) + dh1
    dc0 = dnn.activate_gradient(c0, dh0, "relu")
    return loss, {
        "stem": dnn.conv_filter_gradient(x, dc0, (3, 3), padding=1),
        "conv1": dnn.conv_filter_gradient(h0, norm1.x, (3, 3), padding=1),
        "scale1": norm1.scale,
        "bias1": norm1.bias,
        "conv2": dnn.conv_filter_gradient(a1, norm2.x, (3, 3), padding=1),
        "scale2": norm2.scale,
        "bias2": norm2.bias,
        "head": pooled.T @ dlogits,
    }
