"""Branches, loops, sequences: what the notebook decides, of values that it may wait for."""

from typing import Any

import numpy as np

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array import library as array
from accel_lab.onnx.node import Call
from accel_lab.onnx.registry import operator
from accel_lab.onnx.values import axis_from_0, ints


@operator("If", host=(0,), anywhere=True, pure=False)
def branch(call: Call, condition: Any) -> Any:
    """Run one of two graphs."""
    graph = call.get("then_branch" if condition.reshape(()) else "else_branch")
    return tuple(graph.run(call.device, {}, call.scope))


def _joined(call: Call, turns: list[Any], axis: int = 0) -> Any:
    """Return what turns made, one behind the other along a new axis."""
    if not turns:
        raise InvalidArgument(f"{call.node.op_type}: without a turn there is nothing to join")
    if not any(isinstance(one, AccelRef) for one in turns):
        return np.stack(turns, axis)
    return array.stack([call.ref(one) for one in turns], axis)


@operator("Loop", host=(0, 1), anywhere=True, pure=False)
def loop(call: Call, most: Any, condition: Any, *carried: Any) -> Any:
    """Run a graph while its condition holds, and so often at most."""
    body = call.get("body")
    limit = None if most is None else int(most.reshape(()))
    goes_on, values = condition is None or bool(condition.reshape(())), list(carried)
    turns: list[list[Any]] = [[] for _ in body.outputs[1 + len(values) :]]
    at = 0
    while goes_on and (limit is None or at < limit):
        given = (np.asarray(at, np.int64), np.asarray(goes_on), *values)
        made = body.run(call.device, dict(zip(body.inputs, given, strict=True)), call.scope)
        goes_on, values = bool(made[0]), made[1 : 1 + len(values)]
        for line, one in zip(turns, made[1 + len(values) :], strict=True):
            line.append(one)
        at += 1
    return *values, *[_joined(call, line) for line in turns]


@operator("Scan", anywhere=True, pure=False, since=9)
def scan(call: Call, *given: Any) -> Any:
    """Run a graph for each element along an axis, with a state."""
    body, count = call.get("body"), call.get("num_scan_inputs")
    state, several = list(given[: len(given) - count]), given[len(given) - count :]
    outputs = len(body.outputs) - len(state)
    axes = call.get("scan_input_axes") or [0] * count
    back = call.get("scan_input_directions") or [0] * count
    lines = [
        _elements(x, axis_from_0(at, x.ndim), turned)
        for x, at, turned in zip(several, axes, back, strict=True)
    ]
    turns: list[list[Any]] = [[] for _ in range(outputs)]
    for elements in zip(*lines, strict=True):
        inputs = dict(zip(body.inputs, (*state, *elements), strict=True))
        made = body.run(call.device, inputs, call.scope)
        state = made[: len(state)]
        for line, one in zip(turns, made[len(state) :], strict=True):
            line.append(one)
    made_axes = call.get("scan_output_axes") or [0] * outputs
    made_back = call.get("scan_output_directions") or [0] * outputs
    joined = [
        _joined(call, line[::-1] if turned else line, at)
        for line, at, turned in zip(turns, made_axes, made_back, strict=True)
    ]
    return *state, *joined


def _elements(x: Any, at: int, turned: int) -> list[Any]:
    places = range(x.shape[at])
    whole = (slice(None),) * at
    return [x[(*whole, k)] for k in (reversed(places) if turned else places)]


@operator("SequenceConstruct", anywhere=True)
def sequence(call: Call, *xs: Any) -> Any:
    """Return a sequence of tensors."""
    return list(xs)


@operator("SequenceEmpty", anywhere=True)
def empty_sequence(call: Call) -> Any:
    """Return a sequence of nothing."""
    return []


@operator("SequenceInsert", host=(2,), anywhere=True)
def insert(call: Call, xs: list[Any], x: Any, place: Any = None) -> Any:
    """Return a sequence with a tensor more, last or at a place."""
    at = len(xs) if place is None else int(place.reshape(()))
    made = list(xs)
    made.insert(at, x)
    return made


@operator("SequenceErase", host=(1,), anywhere=True)
def erase(call: Call, xs: list[Any], place: Any = None) -> Any:
    """Return a sequence without the last tensor, or without the one at a place."""
    made = list(xs)
    del made[-1 if place is None else int(place.reshape(()))]
    return made


@operator("SequenceAt", host=(1,), anywhere=True)
def at_place(call: Call, xs: list[Any], place: Any) -> Any:
    """Return the tensor at a place."""
    return xs[int(place.reshape(()))]


@operator("SequenceLength", anywhere=True)
def length(call: Call, xs: list[Any]) -> Any:
    """Return how many tensors there are."""
    return np.asarray(len(xs), np.int64)


@operator("SplitToSequence", host=(1,), anywhere=True)
def split_to_sequence(call: Call, x: Any, lengths: Any = None) -> Any:
    """Return parts along an axis as a sequence."""
    at = axis_from_0(call.get("axis", 0), x.ndim)
    whole, extent = (slice(None),) * at, x.shape[at]
    if lengths is None:
        keep = call.get("keepdims", 1)
        return [x[(*whole, slice(k, k + 1) if keep else k)] for k in range(extent)]
    each = ints(lengths)
    if lengths.ndim == 0:
        each = tuple(min(each[0], extent - k) for k in range(0, extent, each[0]))
    ends = np.cumsum(each)
    return [x[(*whole, slice(int(end) - n, int(end)))] for n, end in zip(each, ends, strict=True)]


@operator("ConcatFromSequence", anywhere=True)
def concat_from_sequence(call: Call, xs: list[Any]) -> Any:
    """Return the tensors of a sequence joined along an axis, or along a new one."""
    join = call.xp.stack if call.get("new_axis", 0) else call.xp.concatenate
    return join(xs, axis=call.get("axis"))


@operator("Optional", anywhere=True)
def optional(call: Call, x: Any = None) -> Any:
    """Return what may lack."""
    return x


@operator("OptionalHasElement", anywhere=True)
def has_element(call: Call, x: Any = None) -> Any:
    """Return whether it is there."""
    return np.asarray(x is not None)


@operator("OptionalGetElement", anywhere=True)
def element(call: Call, x: Any) -> Any:
    """Return it."""
    if x is None:
        raise InvalidArgument("OptionalGetElement: there is nothing")
    return x
