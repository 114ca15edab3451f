"""Attention and its gradients, and caches of keys and values in pages.

On `cuda` cuDNN computes float16 and bfloat16 where it is installed and has the mask; all else is
products by cuBLAS and CuPy's kernels. float16 and bfloat16 are computed in float32; float32 is not
rounded to tf32.
"""

from typing import Any, ClassVar

from accel_lab.compute.execution.launch import Launch, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.attention.dense import *  # noqa: F403 - attention.attend and the like
from accel_lab.libraries.attention.dense import Attend, AttendGradient
from accel_lab.libraries.authoring.default_actor import DefaultActor


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


def _read(launch: Launch, *refs: AccelRef | None) -> list[Any]:
    return [None if ref is None else launch.read(ref) for ref in refs]


def _check(m: Any, launch: Launch, wrong: Any) -> None:
    if m.lengths_q is not None or m.lengths_k is not None:
        launch.check(wrong, m.judge)
