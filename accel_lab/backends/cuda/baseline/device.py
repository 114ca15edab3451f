"""The machine as its libraries describe it, and its clock."""

from time import monotonic

from cupy.cuda import runtime


def versions() -> dict[str, str]:
    """Return what only the context can tell of its libraries."""
    from nvmath.bindings import cublas

    handle = cublas.create()
    code = cublas.get_version(handle)
    cublas.destroy(handle)
    return {
        "cuda driver api": _dotted(runtime.driverGetVersion()),
        "cuda runtime": _dotted(runtime.runtimeGetVersion()),
        "cublas": f"{code // 10000}.{code // 100 % 100}.{code % 100}",
    }


def finished() -> float:
    """Return the time, in monotonic seconds, when all work so far is done; waits for it."""
    runtime.deviceSynchronize()
    return monotonic()


def _dotted(code: int) -> str:
    """Write CUDA's 13000 as 13.0."""
    return f"{code // 1000}.{code % 1000 // 10}"
