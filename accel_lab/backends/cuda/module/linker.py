"""nvJitLink: several binaries to one cubin, without a GPU."""

import importlib
from typing import Any

from accel_lab.errors import BackendUnavailable, CompileError, InvalidArgument

_LOG_LIMIT = 64 << 10
_TYPES = {"cubin": "CUBIN", "ptx": "PTX", "lto": "LTOIR", "fatbin": "FATBIN"}


def linked(kinds: tuple[str, ...], images: list[bytes], architecture: str) -> tuple[bytes, str]:
    """Link for an architecture, as `90`; return the cubin, and the linker's warnings.

    Raises:
        CompileError: with nvJitLink's log.
        BackendUnavailable: nvJitLink is not installed.
    """
    linker = _linker()
    options = [f"-arch=sm_{architecture}", *(["-lto"] if "lto" in kinds else [])]
    handle = linker.create(len(options), options)
    try:
        try:
            for i, (kind, image) in enumerate(zip(kinds, images, strict=True)):
                # PTX is a text, which C ends with a NUL.
                data = image if kind != "ptx" or image.endswith(b"\0") else image + b"\0"
                form = getattr(linker.InputType, _TYPES[kind])
                linker.add_data(handle, form, data, len(data), f"input {i}")
            linker.complete(handle)
        except linker.nvJitLinkError as error:
            log = _log(linker.get_error_log_size, linker.get_error_log, handle) or str(error)
            text = f"the module does not link:\n{log}"
            raise CompileError(text, log=log, name="module") from error
        cubin = bytearray(linker.get_linked_cubin_size(handle))
        linker.get_linked_cubin(handle, cubin)
        return bytes(cubin), _log(linker.get_info_log_size, linker.get_info_log, handle)
    finally:
        linker.destroy(handle)


def require_linkable(number: int) -> InvalidArgument:
    """Return what refuses a cubin that is linked already: nvJitLink would drop it in silence."""
    return InvalidArgument(
        f"load: file {number} is a cubin that is linked already, so nothing can be linked with it; "
        "make it with linkable=True (-rdc=true), or give its PTX"
    )


def _linker() -> Any:
    try:
        linker = importlib.import_module("cuda.bindings.nvjitlink")
        linker.version()
    except (ImportError, RuntimeError) as error:
        text = f"PTX, LTO-IR and linking need nvJitLink: pip install nvidia-nvjitlink ({error})"
        raise BackendUnavailable(text) from error
    return linker


def _log(size_of: Any, read: Any, handle: int) -> str:
    log = bytearray(size_of(handle))
    if log:
        read(handle, log)
    return bytes(log).rstrip(b"\0").decode(errors="replace")[:_LOG_LIMIT].strip()
