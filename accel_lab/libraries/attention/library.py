"""Attention and its gradients, and caches of keys and values in pages.

On `cuda` cuDNN computes float16 and bfloat16 where it is installed and has the mask, also from
pages. There up to 8 queries of a sequence are else attended by one kernel; all else is
products by cuBLAS and CuPy's kernels. float16 and bfloat16 are computed in float32; float32 is not
rounded to tf32.
"""

from functools import partial
from typing import Any, ClassVar

from accel_lab.compute.execution.launch import Launch, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.attention.cache import *  # noqa: F403 - attention.KVCache
from accel_lab.libraries.attention.dense import *  # noqa: F403 - attention.attend and the like
from accel_lab.libraries.attention.dense import Attend, AttendGradient, judged
from accel_lab.libraries.attention.float8 import *  # noqa: F403 - attention.attend_float8
from accel_lab.libraries.attention.float8 import AttendFloat8
from accel_lab.libraries.attention.pages import *  # noqa: F403 - attention.make_cache and the like
from accel_lab.libraries.attention.pages import (
    CacheAppend,
    CacheAttend,
    CacheEvict,
    CacheFork,
    CacheStatistics,
    MakeCache,
)
from accel_lab.libraries.authoring.default_actor import DefaultActor
from accel_lab.libraries.authoring.operand import array_of


class AttentionActor(DefaultActor):
    """Owns what computes attention in one context."""

    library: ClassVar[str] = "attention"

    @handles(Attend)
    def attend(self, m: Attend, launch: Launch) -> None:
        """Enqueue attention; lengths are judged."""
        out = launch.empties()
        operands = _read(launch, m.q, m.k, m.v, m.lengths_q, m.lengths_k, m.sink)
        _check(m, launch, self.lib.attend(m, *operands, out))

    @handles(AttendGradient)
    def attend_gradient(self, m: AttendGradient, launch: Launch) -> None:
        """Enqueue the gradients of attention; lengths are judged."""
        out = launch.empties()
        operands, made = _read(launch, m.q, m.k, m.v), _read(launch, m.y, m.lse, m.dy)
        rest = _read(launch, m.lengths_q, m.lengths_k, m.sink)
        _check(m, launch, self.lib.attend_gradient(m, operands, made, *rest, out))

    @handles(AttendFloat8)
    def attend_float8(self, m: AttendFloat8, launch: Launch) -> None:
        """Enqueue attention of float8."""
        out = launch.empties()
        operands = _read(launch, m.q, m.k, m.v)
        *scales, scale_y = _read(launch, m.scale_q, m.scale_k, m.scale_v, m.scale_y)
        self.lib.attend_float8(m, operands, scales, scale_y, out)

    @handles(MakeCache)
    def make_cache(self, m: MakeCache, launch: Launch) -> None:
        """Keep an empty cache."""
        launch.keep(self.lib.make_cache(m))

    @handles(CacheAppend)
    def cache_append(self, m: CacheAppend, launch: Launch) -> None:
        """Enqueue the writing of tokens, once it is known that there is room."""
        m.infer()  # the notebook could not, where a shape was unknown to it
        places = self.lib.places(m, array_of(m.cache))
        k, v = launch.read(m.k), launch.read(m.v)
        self.lib.cache_append(launch.write(m.cache), places, k, v)

    @handles(CacheAttend)
    def cache_attend(self, m: CacheAttend, launch: Launch) -> None:
        """Enqueue attention to what the cache has by now."""
        m.infer()
        pages = launch.read(m.cache)
        self.lib.require_stored(m, pages)
        out = launch.empties()
        self.lib.cache_attend(m, pages, *_read(launch, m.q, m.sink), out)

    @handles(CacheFork)
    def cache_fork(self, m: CacheFork, launch: Launch) -> None:
        """Have pages shared."""
        array_of(m.cache).table.fork(m.of, m.to)  # refuses before it changes anything
        launch.write(m.cache)

    @handles(CacheEvict)
    def cache_evict(self, m: CacheEvict, launch: Launch) -> None:
        """Have pages freed: what is written next comes behind what reads them now."""
        array_of(m.cache).table.evict(m.sequences, m.keep)
        launch.write(m.cache)

    @handles(CacheStatistics)
    def cache_statistics(self, m: CacheStatistics, launch: Launch) -> None:
        """Enqueue the counts."""
        self.lib.cache_statistics(launch.read(m.cache), launch.empty())


def _read(launch: Launch, *refs: AccelRef | None) -> list[Any]:
    return [None if ref is None else launch.read(ref) for ref in refs]


def _check(m: Any, launch: Launch, wrong: Any) -> None:
    if m.lengths_q is not None or m.lengths_k is not None:
        launch.check(wrong, partial(judged, m))
