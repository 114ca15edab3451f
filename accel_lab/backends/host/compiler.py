"""The system's C++ compiler, and the CUDA source as it gets it.

The source is the user's own, between a header that defines CUDA's words and the table of the
kernel's parameters. Line numbers and file names stay the user's.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from accel_lab.backends.host.lacking import lacking
from accel_lab.errors import CompileError
from accel_lab.libraries.jit.comments import without_comments
from accel_lab.libraries.jit.program import Program, base_of, compile_error
from accel_lab.libraries.jit.signature import prefix_of, reflection

SHIM = Path(__file__).with_name("shim")
INSTALL = "install one (Debian, Ubuntu: sudo apt-get install g++), or name it in CXX"
LIBRARY = "kernel.so"
UNIT = "accel_lab_kernel.cpp"
PRINTED = "accel_lab_print_out"
_INCLUDED = "accel_lab_included.d"
_VARIABLES = (
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "C_INCLUDE_PATH",
    "LIBRARY_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "CCC_OVERRIDE_OPTIONS",
    "SOURCE_DATE_EPOCH",
)

_CANDIDATES = ("c++", "g++", "clang++")
_FLAGS = (
    "-O2",
    "-g",
    "-shared",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-math-errno",
    "-ffp-contract=off",
    "-U_FORTIFY_SOURCE",
    "-Wno-unknown-pragmas",
    "-Wl,-Bsymbolic",
    "-fdiagnostics-color=never",
)
_LOG_LIMIT = 64 << 10
_PARENTHESES = r"\([^()]*(?:\([^()]*\)[^()]*)*\)"
_ALIGNMENT = re.compile(rf"\b(?:__align__|alignas)\s*{_PARENTHESES}")
_DECLARATOR = r"[A-Za-z_]\w*\s*\[\s*\](?:\s*\[[^\]]*\])*"
_SHARED_ARRAY = re.compile(
    rf"(?:{_ALIGNMENT.pattern}\s*)*\b(?:extern\b(?P<before>[^;{{}}=\"]*?)\b__shared__"
    rf"|__shared__\s+extern)\b(?P<type>[^;={{}}]*?)(?P<names>{_DECLARATOR}(?:\s*,\s*{_DECLARATOR})*)"
    r"\s*;"
)
_NAMED = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*\[\s*\](?P<rest>(?:\s*\[[^\]]*\])*)")
_ALIGNED = re.compile(rf"\b(?P<word>__shared__)\s+(?P<alignment>alignas\s*{_PARENTHESES})")
_STATIC = re.compile(  # the shim's __shared__ says it already, and must not for the others
    r"\bstatic\s+(?P<before>(?:__device__\s+)?__(?:shared|constant)__"
    r"|(?:__device__|__managed__)(?=[^(){};]*?[\w\]]\s*[=;]))"
    r"|(?P<after>__(?:shared|constant)__)\s+static\b"
)
# One kernel of a file is compiled. For the others, being static, no code is generated.
_KERNEL = re.compile(r'\bextern[ \t]+"C"[ \t]+(?=__global__[ \t]+void\b)')
_SYNCHRONISES = re.compile(
    r"\b__(?:sync|shfl|ballot|any|all|match|reduce|activemask)\w*|\b__nanosleep\b"
    r"|\bcooperative_groups\b"
)
_WAITS_FOR_GRID = re.compile(r"\b(?:this_grid|grid_group)\b")
_MACRO_OF_KERNELS = re.compile(r"#\s*define\b(?:[^\n]|\\\n)*?__global__")

# In the signature: how the launch gets from an array of addresses to the kernel's arguments.
_CALL = """  template <decltype(sizeof(0))... $I>
  static void $call(void (*$kernel)($A...), void** $at, std::index_sequence<$I...>) {{
    $kernel(*static_cast<$A*>($at[$I])...);
  }}
  static void $call(void (*$kernel)($A...), void** $at) {{
    $call($kernel, $at, std::index_sequence_for<$A...>());
  }}
"""
_LAUNCH = """
static const $kernel_type $kernel = &{kernel};
static void** $arguments;
static void $thread() {{ $signature_of::$Kernel::$call($kernel, $arguments); }}
extern "C" __attribute__((visibility("default"))) const char* {launch}(
    void** $given, unsigned $gx, unsigned $gy, unsigned $gz, unsigned $bx, unsigned $by,
    unsigned $bz, bool $together, size_t $dynamic) {{
  $arguments = $given;
  return accel_lab_shim::accel_lab_run_grid(
      dim3($gx, $gy, $gz), dim3($bx, $by, $bz), {fibers}, $together, $dynamic, $thread);
}}
"""
_PRINTED = f"""
extern "C" __attribute__((visibility("default"))) const char* {PRINTED}() {{
  return accel_lab_shim::accel_lab_what_was_printed();
}}
"""


def compiler() -> list[str]:
    """Return the command of the C++ compiler: `CXX`, else the first there is.

    Raises:
        CompileError: there is none, or `CXX` holds no command.
    """
    try:
        command = shlex.split(os.environ.get("CXX", ""))
    except ValueError as error:
        raise CompileError(f"CXX holds no command: {error}; correct it, or unset it") from error
    names = [command[0]] if command else _CANDIDATES
    for name in names:
        if path := shutil.which(name):
            return [path, *command[1:]]
    raise CompileError(f"there is no C++ compiler ({', '.join(names)}) on the path: {INSTALL}")


@cache
def version_of(command: tuple[str, ...]) -> str:
    """Return what a compiler says of itself.

    Raises:
        CompileError: it cannot be started.
    """
    return _run([*command, "--version"]).stdout.partition("\n")[0]


@cache
def shim_text() -> str:
    """Return all headers of the shim, for a cache's key."""
    return "".join(path.read_text() for path in sorted(SHIM.rglob("*.h")))


def programs(command: tuple[str, ...]) -> list[str]:
    """Return the files that a command names, for a cache's key."""
    return [str(Path(word).resolve()) for word in command if Path(word).is_file()]


def environment() -> list[tuple[str, str]]:
    """Return the variables that change what a compiler makes, those that are set."""
    return [(name, os.environ[name]) for name in _VARIABLES if name in os.environ]


class Compiled(NamedTuple):
    """A shared library.

    Attributes:
        log: the compiler's warnings.
        included: the paths of the files that it was made of, but for the shim and the program's.
    """

    library: bytes
    log: str
    included: list[str]


def build(program: Program, folder: Path, home: Path) -> Compiled:
    """Compile in an empty folder.

    Parameters:
        home: where the source is going to be, for debuggers.

    Raises:
        CompileError: with the compiler's log.
    """
    command = compiler()
    for name, text in program.included.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_portable(text), encoding="utf-8")
    (folder / UNIT).write_text(translated(program), encoding="utf-8")
    done = _run(
        [
            *command,
            *_flags(program.options),
            f"-fdebug-prefix-map={folder}={home}",
            "-MD",
            "-MF",
            _INCLUDED,
            "-I.",
            f"-I{SHIM}",
            f"-I{SHIM / 'empty'}",
            "-o",
            LIBRARY,
            UNIT,
        ],
        folder,
    )
    log = (done.stderr + done.stdout)[:_LOG_LIMIT].strip()
    if done.returncode != 0:
        raise compile_error(program, log, _why(program))
    for base in map(base_of, program.names):
        if not _is_kernel(program, base):
            raise compile_error(program, f"{base} is not marked __global__, as kernels are")
    return Compiled((folder / LIBRARY).read_bytes(), log, _included(folder))


def _included(folder: Path) -> list[str]:
    """Return what the compiler has read beside the shim and the files of the program."""
    rule = (folder / _INCLUDED).read_text(errors="surrogateescape").partition(": ")[2]
    # A path's own spaces, `#` and `$` are written so in a rule of make.
    words = re.findall(r"(?:\\[ #\\]|[^\s\\]|\\(?!\n))+", rule)
    paths = (re.sub(r"\\([ #])", r"\1", word).replace("$$", "$") for word in words)
    own = f"{SHIM}{os.sep}", f"{folder}{os.sep}"
    return sorted({path for path in paths if path.startswith("/") and not path.startswith(own)})


def _run(command: list[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the user's compiler."""
    try:
        return subprocess.run(  # noqa: S603 - it is the user's
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env=os.environ | {"LC_ALL": "C"},
        )
    except OSError as error:  # it is for another machine, or its interpreter is not there
        text = f"{command[0]} cannot be started: {error.strerror}; {INSTALL}"
        raise CompileError(text) from error


def translated(program: Program) -> str:
    """Return the C++ of a program; each line of the source is on its own line still."""
    fibers = any(_SYNCHRONISES.search(text) for text in _texts(program))
    grid = "#define ACCEL_LAB_GRID 1\n" if waits_for_grid(program) else ""
    launches = (_launch(name, i, fibers=fibers) for i, name in enumerate(program.names))
    return (
        f'{grid}#include "accel_lab_cuda.h"\n{_macros(program.options)}#line 1 "{program.file}"\n'
        f"{_portable(program.text)}\n{''.join(launches)}{_PRINTED}"
    )


def launch_of(number: int) -> str:
    """Return what launches a program's kernel of this number."""
    return f"{prefix_of(number)}launch"


def _launch(kernel: str, number: int, *, fibers: bool) -> str:
    """Return the table of a kernel, and what launches it."""
    storage = '__attribute__((visibility("default"), used))'
    launch = _LAUNCH.replace("$", prefix_of(number)).format(
        kernel=kernel, launch=launch_of(number), fibers=str(fibers).lower()
    )
    signature = reflection(kernel, storage, more=_CALL, number=number)
    return f'#line 1 "the signature of {base_of(kernel)}"\n{signature}{launch}'


def waits_for_grid(program: Program) -> bool:
    """Whether a kernel may wait for all blocks of its grid."""
    return any(_WAITS_FOR_GRID.search(text) for text in _texts(program))


def _texts(program: Program) -> tuple[str, ...]:
    return (program.text, *program.included.values())


def _macros(options: tuple[str, ...]) -> str:
    """Write -D and -U as lines behind the shim, which they must not change."""
    lines = ""
    for option in options:
        name, _, value = option[2:].partition("=")
        if option.startswith("-D"):
            lines += f"#define {name} {value if '=' in option else 1}\n"
        elif option.startswith("-U"):
            lines += f"#undef {name}\n"
    return lines


def _portable(source: str) -> str:
    """Rewrite what no macro can: dynamic shared memory, and words that C++ has a use for."""
    source = source.replace("__noinline__", "__attribute__((noinline))")
    source = _KERNEL.sub(lambda found: "static".ljust(len(found[0])), source)
    source = _STATIC.sub(lambda found: found["before"] or found["after"], source)
    source = _ALIGNED.sub(r"\g<alignment> \g<word>", source)
    return _SHARED_ARRAY.sub(_shared_pointers, source)


def _shared_pointers(found: re.Match[str]) -> str:
    element = _ALIGNMENT.sub("", f"{found['before'] or ''} {found['type']}")
    element = " ".join(element.split())
    pointers = ""
    for one in _NAMED.finditer(found["names"]):
        name = f"(*{one['name']}){one['rest']}" if one["rest"] else f"*{one['name']}"
        pointers += f"{element} {name} = accel_lab_shim::dynamic_shared();"
    return pointers + "\n" * found[0].count("\n")


def _flags(options: tuple[str, ...]) -> Iterator[str]:
    """Yield the compiler's options; those that only mean something to a GPU are left out."""
    yield from _FLAGS
    standard = "-std=c++17"
    for option in options:
        if option.lstrip("-").startswith("std="):
            standard = "-" + option.lstrip("-")
        elif option.lstrip("-") == "fmad=true":
            yield "-ffp-contract=fast"
        elif option == "-w":
            yield option
    yield standard


def _is_kernel(program: Program, base: str) -> bool:
    """Whether a function is marked as one, or a macro may do that."""
    if any("__global__" in option for option in program.options):
        return True
    kernel = re.compile(rf"__global__[^;{{}}]*?\b{base}\s*[(<]")
    texts = map(without_comments, (program.text, *program.included.values()))
    return any(kernel.search(text) or _MACRO_OF_KERNELS.search(text) for text in texts)


def _why(program: Program) -> str:
    missing = lacking(program.text)
    if not missing:
        return ""
    return (
        f"{program.name} does not compile on the host, whose CUDA has no {'; no '.join(missing)}. "
        "Run it on cuda, or put that part between #ifdef __CUDA_ARCH__ and #endif"
    )
