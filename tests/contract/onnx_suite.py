"""ONNX's own tests of its operators: which of them are for us, and what each asks."""

import sys
import warnings
from importlib import import_module
from typing import Any

import numpy as np

from accel_lab import onnx as ours
from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.compute.device import Device

FOLDER = "onnx.backend.test.case.node"


def cases(module: str = "") -> list[Any]:
    """Return the tests of one module of the suite, or of all."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if not module:
            loader = import_module("onnx.backend.test.loader")
            return list(loader.load_model_tests(kind="node"))
        node = import_module(FOLDER)
        before = [*node._NodeTestCases]
        sys.modules.pop(f"{FOLDER}.{module}", None)  # its import is what makes its tests
        node._existing_names.clear()
        import_module(f"{FOLDER}.{module}")
        return [one for one in node._NodeTestCases if not any(one is old for old in before)]


def is_exotic(case: Any) -> bool:
    """Whether a test is of a dtype that no array here has."""
    ports = [*case.model.graph.input, *case.model.graph.output]
    return any(_dtype(port.type) not in NAMES for port in ports)


def _dtype(kind: Any) -> str:
    import onnx

    name = kind.WhichOneof("value")
    if name in ("sequence_type", "optional_type"):
        return _dtype(getattr(kind, name).elem_type)
    code = kind.tensor_type.elem_type if name == "tensor_type" else onnx.TensorProto.STRING
    if code == onnx.TensorProto.STRING:
        return "string"
    return str(onnx.helper.tensor_dtype_to_np_dtype(code))


def judge(device: Device, case: Any) -> None:
    """Run a test, with all its inputs on the device, as the suite compares it."""
    model = ours.load(case.model, device)
    assert case.data_sets
    for inputs, outputs in case.data_sets:
        names = [one.name for one in case.model.graph.input]
        given = {name: _put(device, x) for name, x in zip(names, inputs, strict=False)}
        made = model.run(given)
        assert len(made) == len(outputs)
        for got, wanted in zip(made.values(), outputs, strict=True):
            _compare(got, wanted, case)


def _array(x: Any) -> Any:
    import onnx

    return np.asarray(onnx.numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x)


def _put(device: Device, x: Any) -> Any:
    if isinstance(x, list | tuple):
        return [_put(device, one) for one in x]
    return None if x is None else device.put(_array(x))


def _compare(got: Any, wanted: Any, case: Any) -> None:
    if isinstance(wanted, list | tuple):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            _compare(one, other, case)
        return
    x, y = got.get(), _array(wanted)
    assert (x.shape, str(x.dtype)) == (y.shape, str(y.dtype))
    if y.dtype.kind not in "biufc":  # NumPy does not compare narrow floats
        x, y = x.astype(numpy_dtype("float32")), y.astype(numpy_dtype("float32"))
    np.testing.assert_allclose(x, y, rtol=case.rtol, atol=case.atol)
