"""Models made for tests, and what onnxruntime computes of them."""

from typing import Any

import numpy as np

FLOAT, INT64 = 1, 7
Nodes = list[tuple[str, list[str], list[str], dict[str, Any]]]


def value(name: str, code: int, shape: Any) -> Any:
    """Return what an input or an output is."""
    from onnx import helper

    return helper.make_tensor_value_info(name, code, shape)


def tensor(x: Any, name: str = "") -> Any:
    """Return an array as it stands in a model."""
    from onnx import numpy_helper

    return numpy_helper.from_array(np.asarray(x), name)


def model(
    nodes: Nodes,
    inputs: list[Any],
    outputs: list[Any],
    constants: dict[str, Any] | None = None,
    version: int = 18,
) -> Any:
    """Return a model of nodes (operator, inputs, outputs, attributes)."""
    from onnx import helper

    made = [helper.make_node(op, a, b, name=f"the_{b[0]}", **more) for op, a, b, more in nodes]
    kept = [tensor(x, name) for name, x in (constants or {}).items()]
    graph = helper.make_graph(made, "graph", inputs, outputs, kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)


def onnxruntime(proto: Any, **inputs: Any) -> list[Any]:
    """Return what onnxruntime computes."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    source = proto if isinstance(proto, str) else proto.SerializeToString()
    session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    made: list[Any] = session.run(None, inputs)
    return made
