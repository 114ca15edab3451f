"""NVRTC: CUDA C++ to a cubin, without a GPU and without the interpreter's lock."""

import contextlib
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from cupy.cuda import nvrtc

from accel_lab.errors import CompileError
from accel_lab.libraries.jit.includes import Includes, includes_of
from accel_lab.libraries.jit.program import Program, base_of, compile_error
from accel_lab.libraries.jit.signature import reflection

_LOG_LIMIT = 64 << 10
_CONSTANTS = re.compile(r"\b(?:INFINITY|NAN|M_[A-Z]\w*)\b")
OWN_HEADERS = str(Path(__file__).with_name("include"))
"""Where the headers of accel_lab are: `accel_lab/tma.h` and its like."""
_SPECIFIC = re.compile(r"\b(?:wgmma|setmaxnreg|tcgen05)\b")
"""What only the code for one generation of cards has, as sm_90a."""
_WAITS = re.compile(
    r"\b(?:wait_for_previous|cudaGridDependencySynchronize)\b|\bgriddepcontrol\.wait\b"
)
_UNANNOTATED = "-default-device"  # NVRTC's log names it where it helps
_LIBCUXX = re.compile(r"#\s*include\s*<(?:cuda|cub|thrust)/")

# What sources written for nvcc include. NVRTC has most of their contents itself, and no files.
_INTEGERS = """
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long uint64_t; typedef long intptr_t; typedef unsigned long uintptr_t;
"""
_LIMITS = """
#define CHAR_BIT 8
#define SHRT_MAX 32767
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LLONG_MAX 9223372036854775807ll
#define LLONG_MIN (-LLONG_MAX - 1ll)
#define ULLONG_MAX 18446744073709551615ull
"""
_FLOATS = """
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623158e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
"""
_MATH = """
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif
#ifndef M_PI
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#endif
"""
_ALWAYS = "accel_lab_nvrtc.h"
_TYPES = "accel_lab_types.h"
_SHORT = re.compile(r"\b(?:ushort|uint|ulong)\b")
_NAMES = "typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned long ulong;\n"
"""What Linux's `sys/types.h` has, which nvcc includes."""
_STANDARD = {
    _ALWAYS: _MATH,
    _TYPES: _NAMES,
    "stdint.h": _INTEGERS,
    "cstdint": _INTEGERS,
    "limits.h": _LIMITS,
    "climits": _LIMITS,
    "float.h": _FLOATS,
    "cfloat": _FLOATS,
    **dict.fromkeys(
        ("stdio.h", "cstdio", "assert.h", "cassert", "string.h", "cstring", "stddef.h", "cstddef"),
        "",
    ),
    **dict.fromkeys(("math.h", "cmath", "stdlib.h", "cstdlib"), ""),
    **dict.fromkeys(("cuda_runtime.h", "device_launch_parameters.h"), ""),
    **{
        name: f"#include <cuda/std/{name}>\nnamespace std {{ using namespace cuda::std; }}\n"
        for name in ("type_traits", "utility", "limits")
    },
}


class Compiled(NamedTuple):
    """A cubin.

    Attributes:
        symbols: what the kernels are called in it.
        log: the compiler's warnings.
    """

    cubin: bytes
    symbols: tuple[str, ...]
    log: str

    @property
    def symbol(self) -> str:
        """What the first kernel is called in it."""
        return self.symbols[0]


def version() -> tuple[int, int]:
    """Return NVRTC's version."""
    major, minor = nvrtc.getVersion()
    return major, minor


@cache
def include_folders() -> tuple[str, ...]:
    """Return where CUDA's headers are: the toolkit's, and those of libcu++ that come with CuPy."""
    folders = []
    for name in ("cudart", "cccl"):
        try:
            from cuda.pathfinder import locate_nvidia_header_directory

            found = locate_nvidia_header_directory(name)
        except Exception:  # noqa: BLE001, S112 - no headers; who includes one is told so by NVRTC
            continue
        if found is not None:
            folders.append(found.abs_path)
    spec = find_spec("cupy")
    if spec is not None and spec.origin is not None:
        bundled = Path(spec.origin).parent / "_core" / "include" / "cupy" / "_cccl"
        folders += [
            str(path) for path in (bundled / "libcudacxx", bundled / "cub") if path.is_dir()
        ]
    cutlass = cutlass_headers()
    return (*folders, *([] if cutlass is None else [cutlass]))


def cutlass_headers() -> str | None:
    """Return where CUTLASS's headers are, if they are installed."""
    spec = find_spec("cutlass_library")
    for place in (spec and spec.submodule_search_locations) or ():
        folder = Path(place, "source", "include")
        if folder.is_dir():
            return str(folder)
    return None


def includes(program: Program) -> Includes:
    """Return the files that a program may include.

    NVRTC looks where it runs before it looks among CUDA's headers.
    """
    texts = (program.text, *program.included.values())
    known = {*_STANDARD, *program.included}
    return includes_of(texts, known, [str(Path.cwd()), OWN_HEADERS], include_folders())


def waits_for_previous(program: Program) -> bool:
    """Whether a kernel waits for the one ahead of it by itself, as far as the text tells."""
    return any(map(_WAITS.search, (program.text, *program.included.values())))


def build(program: Program, architecture: str) -> Compiled:
    """Compile for an architecture, as `90`; any thread, blocks for some 0.1 s or more.

    Raises:
        CompileError: with NVRTC's log.
    """
    given = options(program, architecture)
    while True:
        try:
            return _built(program, given)
        except CompileError as error:
            more = tuple(one for one in _mends(program, error) if one not in given)
            if not more:
                raise
            given += more


def _mends(program: Program, error: CompileError) -> Iterator[str]:
    """Give options that may mend it: what lacks an annotation is the device's then."""
    if _UNANNOTATED in error.log:
        yield _UNANNOTATED
    if any(map(_SHORT.search, (program.text, *program.included.values()))):
        yield f"--pre-include={_TYPES}"


def _built(program: Program, given: tuple[str, ...]) -> Compiled:
    with compiled(program, translated(program), given) as (handle, log):
        symbols = tuple([nvrtc.getLoweredName(handle, name) for name in program.names])
        return Compiled(nvrtc.getCUBIN(handle), symbols, log)


@contextlib.contextmanager
def compiled(program: Program, text: str, given: tuple[str, ...]) -> Iterator[tuple[Any, str]]:
    """Compile a text, for as long as the block lasts; gives NVRTC's handle, and its warnings.

    Raises:
        CompileError: with NVRTC's log.
    """
    headers = {**_STANDARD, **program.included}
    texts = tuple(text.encode() for text in headers.values())
    names = tuple(name.encode() for name in headers)
    handle = nvrtc.createProgram(text, program.file, texts, names)
    try:
        for name in program.names:
            nvrtc.addNameExpression(handle, name)
        try:
            nvrtc.compileProgram(handle, given)
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(handle)[:_LOG_LIMIT].strip() or str(error)
            raise compile_error(program, log) from error
        yield handle, nvrtc.getProgramLog(handle)[:_LOG_LIMIT].strip()
    finally:
        nvrtc.destroyProgram(handle)


def translated(program: Program) -> str:
    """Return the source, and behind it the table of each kernel's parameters."""
    tables = (
        f'#line 1 "the signature of {base_of(name)}"\n{reflection(name, "__device__", number=i)}'
        for i, name in enumerate(program.names)
    )
    return f"{program.text}\n{''.join(tables)}"


def options(program: Program, architecture: str) -> tuple[str, ...]:
    """Return NVRTC's options: the user's, the architecture, and where headers are."""
    given = program.options
    standard = () if any("std=" in one for one in given) else ("-std=c++17",)
    texts = (program.text, *program.included.values())
    # nvcc has these two macros without an include; libcu++ defines them itself.
    lacks = any(map(_CONSTANTS.search, texts)) and not any(map(_LIBCUXX.search, texts))
    before = (f"--pre-include={_ALWAYS}",) if lacks else ()
    folders = [f"--include-path={folder}" for folder in (OWN_HEADERS, *include_folders())]
    specific = "a" if any(map(_SPECIFIC.search, texts)) else ""
    lines = () if "-lineinfo" in given else ("-lineinfo",)  # for tools; the code is the same
    return (f"-arch=sm_{architecture}{specific}", *before, *lines, *standard, *given, *folders)
