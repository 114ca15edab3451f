"""Attention on cuda: cuDNN's, kernels of our own for few queries to pages, else products."""

import contextlib
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
from cupy.cuda import runtime

from accel_lab.backends.cuda.attention import cudnn, paged
from accel_lab.backends.cuda.attention.cudnn import key_of
from accel_lab.backends.cuda.attention.paged import PagedKey, paged_key
from accel_lab.backends.cuda.attention.paged_kernels import PagedKernels
from accel_lab.backends.cuda.blas.products import CudaProducts
from accel_lab.backends.cuda.device.narrow_floats import FORMATS
from accel_lab.backends.cuda.dnn.kit import CudaKit
from accel_lab.backends.cuda.handles.cudnn_graphs import CudnnGraphs, cudnn_graphs, packed
from accel_lab.backends.cuda.own_kernels.driver_launches import DriverLaunches
from accel_lab.libraries.attention.dense import Attend, AttendGradient
from accel_lab.libraries.attention.evaluation.page_table import Places, rows_of
from accel_lab.libraries.attention.evaluation.paged import Paged, Pages
from accel_lab.libraries.attention.evaluation.terms import Size
from accel_lab.libraries.attention.pages import CacheAttend
from accel_lab.libraries.dnn.message import of_ints

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

_SIZE = Size(rows=1024, keys=4096, scores=2**25)


class CudaCacheKit(CudaKit):
    """CuPy's arrays; narrow floats that it lacks are arrays of their bits."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device

    @cached_property
    def products(self) -> CudaProducts:
        """What multiplies; it has a workspace, and is made when it is first needed."""
        return CudaProducts(self._device)

    def matmul(self, a: Any, b: Any) -> Any:
        """Return the products of two stacks; a graph can capture them, unlike CuPy's."""
        made = cupy.ndarray((*a.shape[:-1], b.shape[-1]), a.dtype)
        self.products.matmul(a, b, made)
        return made

    def close(self) -> None:
        """Destroy what multiplies, if there is any; waits for the device."""
        if "products" in vars(self):
            self.products.close()

    def storage(self, dtype: str) -> str:
        """Return CuPy's dtype, or that of the bits."""
        return FORMATS[dtype].storage if dtype in FORMATS else dtype

    def fetched(self, x: Any) -> Any:
        """Return NumPy's array; waits for the stream."""
        return cupy.asnumpy(x)


class CudaAttention(Paged):
    """Enqueues on the device's active stream; used by the dispatcher thread."""

    def __init__(self, device: "CudaDevice") -> None:
        self._kit = CudaCacheKit(device)
        super().__init__(self._kit, _SIZE)
        self._device = device
        self._cudnn: CudnnGraphs | None = None
        self._is_looked_for = False
        self._by_pages = PagedKernels(DriverLaunches(device))
        self._attended = {"by cuDNN": 0, "by own kernels": 0, "by cuBLAS": 0}

    def attend(
        self,
        m: Attend,
        q: Any,
        k: Any,
        v: Any,
        lengths_q: Any,
        lengths_k: Any,
        sink: Any,
        out: Any,
    ) -> Any:
        """Write what each query gets (cudnn.pygraph.sdpa)."""
        operands, made = [q, k, v], [out.y]
        if sink is not None:
            operands.append(self.kit.widened(sink, m.q.dtype))
        if out.lse is not None:
            made.append(out.lse)
        if self._by_cudnn(m, operands, made, gradient=False):
            return None
        return super().attend(m, q, k, v, lengths_q, lengths_k, sink, out)

    def attend_gradient(
        self,
        m: AttendGradient,
        operands: list[Any],
        made: list[Any],
        lengths_q: Any,
        lengths_k: Any,
        sink: Any,
        out: Any,
    ) -> Any:
        """Write the gradients (cudnn.pygraph.sdpa_backward)."""
        if self._by_cudnn(m, [*operands, *made], [out.q, out.k, out.v], gradient=True):
            return None
        return super().attend_gradient(m, operands, made, lengths_q, lengths_k, sink, out)

    def cache_attend(self, m: CacheAttend, pages: Pages, q: Any, sink: Any, out: Any) -> None:
        """Write what each query gets (cudnn.pygraph.sdpa with the tables of pages).

        Where cuDNN lacks it, few queries are attended by a kernel that reads pages where they are.
        """
        found = [pages.table.sequence(number) for number in of_ints(m, "sequences")]
        lengths = [one.stored for one in found]
        key = paged_key(m, pages.keys.shape, lengths)
        arrays: list[Any] = []
        if key is not None and self._found() is not None:
            table = cupy.asarray(rows_of(found, key.pages).astype(np.int32))
            of_q, of_k = (
                cupy.asarray(np.array(n, np.int32)) for n in ([m.q.shape[2]] * len(found), lengths)
            )
            arrays = [packed(q), pages.keys, pages.values, table, of_q, of_k, out.y]
            if out.lse is not None:
                arrays.append(out.lse)
        if self._try(key, arrays):
            self._attended["by cuDNN"] += 1
        elif self._by_pages.attend(m, pages, found, q, sink, out):
            self._attended["by own kernels"] += 1
        else:
            self._attended["by cuBLAS"] += 1
            super().cache_attend(m, pages, q, sink, out)

    def cache_append(self, pages: Pages, places: Places, k: Any, v: Any) -> None:
        """Write tokens to their places by one kernel, and then let them count."""
        self.copy_pages(pages, places)
        self._by_pages.append(pages, places, k, v)
        pages.table.append(places)

    def _by_cudnn(self, m: Any, operands: list[Any], made: list[Any], *, gradient: bool) -> bool:
        """Enqueue it by cuDNN, and return whether that has it."""
        key = key_of(m, gradient=gradient)
        is_done = self._try(key, [] if key is None else [*map(packed, operands), *made])
        self._attended["by cuDNN" if is_done else "by cuBLAS"] += 1
        return is_done

    def _try(self, key: cudnn.Key | PagedKey | None, arrays: list[Any]) -> bool:
        """Enqueue the plan of a key, and return whether there is one."""
        self._device.active.enqueuing()
        library = None if key is None else self._found()
        return library is not None and library.run(key, arrays, _workspace)

    def _found(self) -> CudnnGraphs | None:
        """Return cuDNN, which is large and loaded when it is first needed; None without it."""
        if not self._is_looked_for:
            self._is_looked_for = True
            self._cudnn = cudnn_graphs(self._device, _built)
        return self._cudnn

    def statistics(self) -> Mapping[str, int]:
        """Count what each library did, and cuDNN's plans; any thread."""
        planned = {} if self._cudnn is None else self._cudnn.statistics()
        return {**self._attended, **planned}

    def close(self) -> None:
        """Destroy what cuDNN and cuBLAS have; waits for the device."""
        self._kit.close()
        if self._cudnn is not None:
            with contextlib.suppress(runtime.CUDARuntimeError):
                self._cudnn.close()


def _built(frontend: Any, handle: int, key: cudnn.Key | PagedKey) -> Any:
    if isinstance(key, PagedKey):
        return paged.built(frontend, handle, key)
    return cudnn.built(frontend, handle, key)


def _workspace(nbytes: int) -> Any:
    return cupy.ndarray((nbytes,), "uint8")
