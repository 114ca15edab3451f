"""The driver's calls for graphs, through its C interface.

By their names in the library, which stay what they are in every version; the structures that are
handed from one call to the next are not looked into, but for what is said here.
"""

import ctypes
from functools import cache
from typing import Any

from cupy.cuda import driver as cupy_driver

from accel_lab.compute.machine.loaded_driver import loaded_driver

KERNEL, MEMCPY, MEMSET, EMPTY, CONDITIONAL = 0, 1, 2, 5, 13
"""The nodes that a graph of ours may have (CUgraphNodeType)."""
KINDS = {3: "a host function", 4: "a graph", 6: "a wait", 7: "an event", 10: "an allocation"}
HOST = 1  # CU_MEMORYTYPE_HOST
RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
SET_DEPENDENCIES = 1  # CU_STREAM_SET_CAPTURE_DEPENDENCIES
ASSIGN_DEFAULT = 1  # CU_GRAPH_COND_ASSIGN_DEFAULT
PARAMETER_BYTES = 256
"""As much as the largest of them takes: CUDA_MEMCPY3D has 200, CUgraphNodeParams 256."""
_SOURCE_KIND, _TARGET_KIND = 32, 120  # where CUDA_MEMCPY3D says what memory it reads and writes
_POINTER = ctypes.c_void_p


class ConditionalParameters(ctypes.Structure):
    """CUgraphNodeParams of a conditional node."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("reserved0", ctypes.c_int * 3),
        ("handle", ctypes.c_uint64),
        ("kind", ctypes.c_int),
        ("size", ctypes.c_uint),
        ("graphs", ctypes.POINTER(_POINTER)),
        ("context", _POINTER),
        ("rest", ctypes.c_byte * (PARAMETER_BYTES - 16 - 32)),
    )


@cache
def _driver() -> Any:
    found = loaded_driver(quick=True)
    assert found is not None
    return found


def call(name: str, *given: Any) -> None:
    """Call a function of the driver.

    Raises:
        cupy_driver.CUDADriverError: it does not answer with success.
    """
    status = getattr(_driver(), name)(*given)
    if status:
        raise cupy_driver.CUDADriverError(status)


def current_context() -> int:
    """Return the context of this thread."""
    context = _POINTER()
    call("cuCtxGetCurrent", ctypes.byref(context))
    return context.value or 0


def begin_capture(stream: int) -> None:
    """Have what is enqueued on a stream become nodes of a new graph."""
    call("cuStreamBeginCapture_v2", _POINTER(stream), RELAXED)


def begin_capture_into(stream: int, graph: int) -> None:
    """Have what is enqueued on a stream become nodes of a graph that has none."""
    call(
        "cuStreamBeginCaptureToGraph",
        _POINTER(stream),
        _POINTER(graph),
        None,
        None,
        ctypes.c_size_t(0),
        RELAXED,
    )


def end_capture(stream: int) -> int:
    """Return the graph that was captured."""
    graph = _POINTER()
    call("cuStreamEndCapture", _POINTER(stream), ctypes.byref(graph))
    return graph.value or 0


def captured(stream: int) -> tuple[int, list[int]]:
    """Return the graph that a stream is being captured into, and what the next node follows."""
    status, graph, count = ctypes.c_int(), _POINTER(), ctypes.c_size_t()
    number, found = ctypes.c_uint64(), ctypes.POINTER(_POINTER)()
    out = (status, number, graph, found, count)
    call("cuStreamGetCaptureInfo_v2", _POINTER(stream), *map(ctypes.byref, out))
    return graph.value or 0, [found[i] or 0 for i in range(count.value)]


def follow(stream: int, node: int) -> None:
    """Have the next node that is captured follow this one."""
    call(
        "cuStreamUpdateCaptureDependencies",
        _POINTER(stream),
        (_POINTER * 1)(node),
        ctypes.c_size_t(1),
        SET_DEPENDENCIES,
    )


def nodes_of(graph: int) -> list[int]:
    """Return the nodes of a graph, in the order in which they were made."""
    count = ctypes.c_size_t()
    call("cuGraphGetNodes", _POINTER(graph), None, ctypes.byref(count))
    if not count.value:  # asked for none, the driver says that a value is invalid
        return []
    found = (_POINTER * count.value)()
    call("cuGraphGetNodes", _POINTER(graph), found, ctypes.byref(count))
    return [found[i] or 0 for i in range(count.value)]


def type_of(node: int) -> int:
    """Return what a node is."""
    kind = ctypes.c_int()
    call("cuGraphNodeGetType", _POINTER(node), ctypes.byref(kind))
    return kind.value


_GET = {
    KERNEL: "cuGraphKernelNodeGetParams_v2",
    MEMCPY: "cuGraphMemcpyNodeGetParams",
    MEMSET: "cuGraphMemsetNodeGetParams",
}
_SET = {
    KERNEL: "cuGraphExecKernelNodeSetParams_v2",
    MEMCPY: "cuGraphExecMemcpyNodeSetParams",
    MEMSET: "cuGraphExecMemsetNodeSetParams",
}


def parameters_of(node: int, kind: int) -> Any:
    """Return the parameters of a node; what they point to lives as long as its graph."""
    found = (ctypes.c_byte * PARAMETER_BYTES)()
    call(_GET[kind], _POINTER(node), found)
    return found


def put_parameters(executable: int, node: int, kind: int, given: Any, context: int) -> bool:
    """Give a node of an executable graph other parameters; False where the driver does not."""
    more = () if kind == KERNEL else (_POINTER(context),)
    return not getattr(_driver(), _SET[kind])(_POINTER(executable), _POINTER(node), given, *more)


def touches_host(copy: Any) -> bool:
    """Whether a copy, given its parameters, reads or writes memory of the host."""
    kinds = (ctypes.c_int.from_buffer(copy, at).value for at in (_SOURCE_KIND, _TARGET_KIND))
    return HOST in kinds


def add_conditional(
    graph: int, after: list[int], kind: int, size: int, context: int, handle: int
) -> tuple[int, list[int]]:
    """Add a node with bodies to a graph; return it, and the graph of each body.

    Parameters:
        kind: CUgraphConditionalNodeType: 0 if, 1 while, 2 switch.
    """
    given = ConditionalParameters(
        type=CONDITIONAL, handle=handle, kind=kind, size=size, context=context
    )
    node = _POINTER()
    before = (_POINTER * max(len(after), 1))(*after)
    call(
        "cuGraphAddNode",
        ctypes.byref(node),
        _POINTER(graph),
        before,
        ctypes.c_size_t(len(after)),
        ctypes.byref(given),
    )
    return node.value or 0, [given.graphs[i] or 0 for i in range(size)]


def condition_of(graph: int, context: int) -> int:
    """Make what a conditional node looks at; it is 0 when a launch begins."""
    handle = ctypes.c_uint64()
    call(
        "cuGraphConditionalHandleCreate",
        ctypes.byref(handle),
        _POINTER(graph),
        _POINTER(context),
        0,
        ASSIGN_DEFAULT,
    )
    return handle.value


def instantiate(graph: int) -> int:
    """Return what can be launched of a graph."""
    executable = _POINTER()
    call(
        "cuGraphInstantiateWithFlags",
        ctypes.byref(executable),
        _POINTER(graph),
        ctypes.c_ulonglong(0),
    )
    return executable.value or 0


def update(executable: int, graph: int) -> bool:
    """Give an executable graph the parameters of another of the same shape; False if it is not."""
    result = (ctypes.c_byte * PARAMETER_BYTES)()
    return not _driver().cuGraphExecUpdate_v2(_POINTER(executable), _POINTER(graph), result)


def launch(executable: int, stream: int) -> None:
    """Enqueue an executable graph."""
    call("cuGraphLaunch", _POINTER(executable), _POINTER(stream))


def destroy_graph(graph: int) -> None:
    """Give back a graph."""
    _driver().cuGraphDestroy(_POINTER(graph))


def destroy_executable(executable: int) -> None:
    """Give back what can be launched."""
    _driver().cuGraphExecDestroy(_POINTER(executable))
