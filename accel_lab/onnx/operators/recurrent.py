"""Recurrent layers: a few messages for each step, in either direction."""

from collections.abc import Callable
from typing import Any

from accel_lab.libraries.array import library as array
from accel_lab.libraries.dnn import library as dnn
from accel_lab.onnx.node import Call, Node
from accel_lab.onnx.registry import operator
from accel_lab.onnx.values import dtype_of, like

_FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "relu": lambda x, _a, _b: dnn.relu(x),
    "tanh": lambda x, _a, _b: array.tanh(x),
    "sigmoid": lambda x, _a, _b: dnn.sigmoid(x),
    "affine": lambda x, a, b: like(x, x * a + b),
    "leakyrelu": lambda x, a, _b: like(x, array.where(x < 0, x * a, x)),
    "thresholdedrelu": lambda x, a, _b: like(x, array.where(x > a, x, 0.0)),
    "scaledtanh": lambda x, a, b: like(x, array.tanh(x * b) * a),
    "hardsigmoid": lambda x, a, b: like(x, array.clip(x * a + b, 0.0, 1.0)),
    "elu": lambda x, a, _b: dnn.elu(x, alpha=a),
    "softsign": lambda x, _a, _b: like(x, x / (abs(x) + 1.0)),
    "softplus": lambda x, _a, _b: dnn.softplus(x),
}
_ALPHA = {"leakyrelu": 0.01, "thresholdedrelu": 1.0, "hardsigmoid": 0.2, "elu": 1.0, "affine": 1.0}
_BETA = {"hardsigmoid": 0.5}
_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _unknown_activation(node: Node) -> str | None:
    for name in node.get("activations") or ():
        if name.lower() not in _FUNCTIONS:
            return f"activation {name}"
    return None


def _functions(call: Call, direction: int) -> list[Callable[[Any], Any]]:
    """Return the activations of a direction."""
    defaults = _DEFAULTS[call.node.op_type]
    names = call.get("activations") or defaults * 2
    alphas, betas = [*(call.get("activation_alpha") or ())], [*(call.get("activation_beta") or ())]
    made: list[Callable[[Any], Any]] = []
    for name in names:
        low = name.lower()
        # Those that have none take none of the lists.
        alpha = (alphas.pop(0) if alphas else _ALPHA[low]) if low in _ALPHA else None
        beta = (
            (betas.pop(0) if betas else _BETA.get(low, 0.0)) if low in (*_BETA, "affine") else None
        )
        made.append(lambda x, f=_FUNCTIONS[low], a=alpha, b=beta: f(x, a, b))  # type: ignore[misc]
    each = len(defaults)
    return made[direction * each : (direction + 1) * each]


@operator("RNN", "GRU", "LSTM", host=(4,), refuses=_unknown_activation)
def recurrent(
    call: Call,
    x: Any,
    w: Any,
    r: Any,
    bias: Any = None,
    lengths: Any = None,
    hidden: Any = None,
    cell: Any = None,
    peepholes: Any = None,
) -> Any:
    """Run a layer over a sequence; return all its steps and its last state."""
    kind, by_batch = call.node.op_type, call.get("layout", 0)
    if by_batch:
        x = x.transpose((1, 0, 2))
        hidden, cell = (None if s is None else s.transpose((1, 0, 2)) for s in (hidden, cell))
    steps, batch, _ = x.shape
    directions, size = r.shape[0], r.shape[2]
    zeros = array.zeros(call.device, (batch, size), dtype_of(x))
    all_steps, all_last, all_cells = [], [], []
    for d in range(directions):
        is_back = d == 1 or call.get("direction", "forward") == "reverse"
        both = None if bias is None else bias[d]
        layer = _Layer(call, d, r[d], both, None if peepholes is None else peepholes[d])
        state = zeros if hidden is None else hidden[d]
        memory = zeros if cell is None else cell[d]
        line: list[Any] = [None] * steps
        wx = array.matmul(x, w[d].transpose((1, 0)))
        for t in reversed(range(steps)) if is_back else range(steps):
            new, new_memory = layer.step(wx[t], state, memory)
            if lengths is not None and (lengths <= t).any():
                # What is behind its end leaves a sequence as it was.
                inside = call.ref((t < lengths).reshape(-1, 1))
                line[t] = array.where(inside, new, zeros)
                new = array.where(inside, new, state)
                new_memory = array.where(inside, new_memory, memory)
            else:
                line[t] = new
            state, memory = new, new_memory
        all_steps.append(array.stack(line) if line else x[:, :, :0].reshape((0, batch, size)))
        all_last.append(state)
        all_cells.append(memory)
    y, last, cells = array.stack(all_steps, 1), array.stack(all_last), array.stack(all_cells)
    if by_batch:
        y = y.transpose((2, 0, 1, 3))
        last, cells = (one.transpose((1, 0, 2)) for one in (last, cells))
    return (y, last, cells) if kind == "LSTM" else (y, last)


class _Layer:
    """One direction of a layer."""

    def __init__(self, call: Call, d: int, r: Any, bias: Any, peepholes: Any) -> None:
        self.size, self.limit = r.shape[1], call.get("clip")
        self.kind, self.call = call.node.op_type, call
        self.functions = _functions(call, d)
        self.r = r.transpose((1, 0))
        half = _GATES[self.kind] * self.size
        self.wb: Any = None if bias is None else bias[:half]
        self.rb: Any = None if bias is None else bias[half:]
        self.p = peepholes

    def step(self, wx: Any, h: Any, c: Any) -> tuple[Any, Any]:
        """Return the next state of one step's input, times its weights, and of the state before."""
        wx = wx if self.wb is None else wx + self.wb
        if self.kind == "LSTM":
            return self._lstm(wx, h, c)
        return (self._gru(wx, h) if self.kind == "GRU" else self._rnn(wx, h)), c

    def _cut(self, x: Any) -> Any:
        return x if self.limit is None else array.clip(x, -self.limit, self.limit)

    def _part(self, x: Any, k: int) -> Any:
        return x[..., k * self.size : (k + 1) * self.size]

    def _rnn(self, wx: Any, h: Any) -> Any:
        made = wx + array.matmul(h, self.r)
        made = made if self.rb is None else made + self.rb
        return self.functions[0](self._cut(made))

    def _gru(self, wx: Any, h: Any) -> Any:
        f, g = self.functions
        split = 2 * self.size
        gates = wx[:, :split] + array.matmul(h, self.r[:, :split])
        gates = gates if self.rb is None else gates + self.rb[:split]
        gates = f(self._cut(gates))
        z, r = self._part(gates, 0), self._part(gates, 1)
        rb = None if self.rb is None else self.rb[split:]
        if self.call.get("linear_before_reset", 0):
            line = array.matmul(h, self.r[:, split:])
            inner = r * (line if rb is None else line + rb)
        else:
            inner = array.matmul(r * h, self.r[:, split:])
            inner = inner if rb is None else inner + rb
        new = g(self._cut(wx[:, split:] + inner))
        return new + z * (h - new)

    def _lstm(self, wx: Any, h: Any, c: Any) -> tuple[Any, Any]:
        f, g, last = self.functions
        gates = wx + array.matmul(h, self.r)
        gates = gates if self.rb is None else gates + self.rb
        i, o, forget, new = (self._part(gates, k) for k in range(4))
        if self.p is not None:
            i, forget = i + self._part(self.p, 0) * c, forget + self._part(self.p, 2) * c
        i, forget = f(self._cut(i)), f(self._cut(forget))
        if self.call.get("input_forget", 0):
            forget = like(i, 1.0 - i)
        memory = forget * c + i * g(self._cut(new))
        if self.p is not None:
            o = o + self._part(self.p, 1) * memory
        return f(self._cut(o)) * last(memory), memory
