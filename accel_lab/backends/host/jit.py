"""Kernels on the host: shared libraries of the system's compiler, run by the dispatcher."""

import _ctypes
import ctypes
import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from accel_lab.backends.host import compiler
from accel_lab.compute.machine.disk_cache import DiskCache, cache_folder, key_of
from accel_lab.errors import UserCodeError
from accel_lab.libraries.jit.arguments import Arguments, keeping
from accel_lab.libraries.jit.elf import Variable, symbols_for, variables_of
from accel_lab.libraries.jit.file_contents import newest_ns, sums_of
from accel_lab.libraries.jit.limits import Limits
from accel_lab.libraries.jit.messages import Compile, KernelFacts, Triple
from accel_lab.libraries.jit.module_globals import Place, declared_in
from accel_lab.libraries.jit.signature import TABLE, parameters_of, table_bytes

FORMAT = 5
SHARED_LIMIT = 227 << 10
TOGETHER = 16384  # threads, each with a stack of its own
_NO_GRID = (
    "is for a kernel whose source has this_grid(); on the host no other may wait for all its blocks"
)
_LOG = "log.txt"
_INCLUDED = "included.json"
_PRINTS = re.compile(r"\b(?:printf|puts|putchar)\b")


class Built(NamedTuple):
    """A library.

    Attributes:
        library: its bytes.
        folder: where its files are, if the disk took them.
        source: where the source is that debuggers look for; empty if the disk did not take it.
    """

    program: Compile
    library: bytes
    folder: Path | None
    source: str
    log: str
    cached: bool


class HostKernel:
    """A kernel whose library is loaded; the library goes with it."""

    def __init__(self, built: Built) -> None:
        self._built = built._replace(library=b"")
        self.name = built.program.name
        self.nbytes = len(built.library)
        program = built.program
        # Of two handles of one library both would have the same variables.
        own = bool(declared_in((program.source, *program.headers.values())))
        self._library = _loaded(built, alone=own)
        table = ctypes.addressof(ctypes.c_char.in_dll(self._library, TABLE))
        self._variables: dict[str, Variable] = variables_of(built.library) if own else {}
        self._base = table - self._variables[TABLE].address if own else 0
        count = ctypes.c_uint32.from_address(table + 4).value
        parameters = parameters_of(ctypes.string_at(table, table_bytes(count)))
        self.arguments = Arguments(built.program.name, parameters, _address)
        read_only = tuple([one.read_only for one in parameters])
        why_not = "" if compiler.waits_for_grid(program) else _NO_GRID
        self.limits = Limits(
            self.name, SHARED_LIMIT, read_only=read_only, together=TOGETHER, why_not=why_not
        )
        self._launch = getattr(self._library, compiler.LAUNCH)
        self._launch.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 6]
        self._launch.argtypes += [ctypes.c_bool, ctypes.c_size_t]
        self._launch.restype = ctypes.c_char_p
        self._printed: Any = None
        if _PRINTS.search("".join((built.program.source, *built.program.headers.values()))):
            self._printed = getattr(self._library, compiler.PRINTED)
            self._printed.restype = ctypes.c_char_p

    def enqueue(
        self,
        grid: Triple,
        block: Triple,
        shared_bytes: int,
        stream: Any,  # noqa: ARG002 - what is enqueued is done
        *,
        cooperative: bool,
    ) -> None:
        """Run every block to its end.

        Raises:
            InvalidArgument: more shared memory than there is, or more threads at once.
            UserCodeError: the threads of a block wait for each other for ever, or a lane asks for
                the value of one that is not in its mask.
        """
        self.limits.check(block, shared_bytes)
        if cooperative:
            self.limits.check_together(grid, block)
        how = cooperative, shared_bytes
        _run(self.name, self._launch, self._printed, self.arguments.at, grid, block, how)

    def again(
        self,
        grid: Triple,
        block: Triple,
        shared_bytes: int,
        stream: Any,  # noqa: ARG002 - what is enqueued is done
        *,
        cooperative: bool,
    ) -> Callable[[], None]:
        """Return what runs it once more, with the arguments that are packed now."""
        at, memory = self.arguments.copy()
        how = cooperative, shared_bytes
        # Without this object: its library goes with it when the kernel is freed.
        return keeping(
            partial(_run, self.name, self._launch, self._printed, at, grid, block, how), memory
        )

    def call(self, *addresses: int) -> None:
        """Run one thread; every parameter is a pointer, and these are what they point to.

        Raises:
            UserCodeError: it fails.
        """
        pointers = (ctypes.c_void_p * len(addresses))(*addresses)
        at = (ctypes.c_void_p * len(addresses))(
            *(ctypes.addressof(pointers) + 8 * i for i in range(len(addresses)))
        )
        one = 1, 1, 1
        _run(self.name, self._launch, self._printed, ctypes.addressof(at), one, one, (False, 0))

    def place(self, variable: str) -> Place | None:
        """Find a variable of the source."""
        for symbol in symbols_for(variable):
            if (found := self._variables.get(symbol)) is not None:
                return Place(self._base + found.address, found.nbytes, found.writable)
        return None

    def copy(self, to: int, source: int, nbytes: int, stream: Any) -> None:  # noqa: ARG002 - it is done
        """Copy memory."""
        ctypes.memmove(to, source, nbytes)

    def address_of(self, array: Any) -> int:
        """Return where an array begins."""
        return _address(array)

    def facts(self) -> KernelFacts:
        """Return what is known of it."""
        built = self._built
        return KernelFacts(
            name=built.program.name,
            parameters=tuple(p.text for p in self.arguments.parameters),
            log=built.log,
            cached=built.cached,
            binary=str(built.folder / compiler.LIBRARY) if built.folder else "",
            source=built.source,
            numbers={"code bytes": self.nbytes},
        )

    def __del__(self) -> None:
        if hasattr(self, "_launch"):
            _ctypes.dlclose(self._library._handle)  # noqa: SLF001 - ctypes has no other way


class HostJit:
    """Compiles with the system's C++ compiler; what it made before it finds on disk."""

    def __init__(self) -> None:
        self._cache = DiskCache(cache_folder() / "host")
        self._kernels = 0
        self._found = self._compiled = 0

    def build(self, program: Compile) -> Built:
        """Compile, or find it; any thread.

        Raises:
            CompileError: it does not compile, or there is no compiler.
        """
        built = self._build(program)
        self._found += built.cached
        self._compiled += not built.cached
        return built

    def _build(self, program: Compile) -> Built:
        command = tuple(compiler.compiler())
        key = key_of(
            FORMAT,
            platform.machine(),
            command,
            compiler.version_of(command),
            sums_of(compiler.programs(command)),
            compiler.environment(),
            compiler.shim_text(),
            program.text,
            program.name,
            program.options,
            sorted(program.included.items()),
        )
        # What was included the last time tells which entry is of the files as they are now. It has
        # another name for other contents, for a library that is loaded keeps its path.
        listed, source = self._cache.get(key), str(self._cache.path(key) / program.file)
        if listed is not None and _INCLUDED in listed:
            now = key_of(key, sums_of(json.loads(listed[_INCLUDED])))
            found = self._cache.get(now)
            if found is not None and compiler.LIBRARY in found:
                log, home = found[_LOG].decode(), self._cache.path(now)
                return Built(program, found[compiler.LIBRARY], home, source, log, cached=True)
        began_ns = time.time_ns()
        with self._cache.workplace() as folder:
            made = compiler.build(program, folder, self._cache.path(key))
        if newest_ns(made.included) >= began_ns:  # which of its contents was compiled?
            return Built(program, made.library, None, "", made.log, cached=False)
        kept = self._keep(key, program, made)
        found_at = source if kept is not None else ""
        return Built(program, made.library, kept, found_at, made.log, cached=False)

    def _keep(self, key: str, program: Compile, made: compiler.Compiled) -> Path | None:
        """Enter what was compiled, and of what; None where the disk does not take it."""
        files = {
            compiler.LIBRARY: made.library,
            program.file: program.text.encode(),
            _LOG: made.log.encode(),
        }
        # A debugger looks for the source here.
        included = {
            _INCLUDED: json.dumps(made.included).encode(),
            program.file: files[program.file],
        }
        with suppress(OSError):  # no room, or no right to write
            home = self._cache.put(key_of(key, sums_of(made.included)), files)
            self._cache.put(key, included, anew=True)
            return home
        return None

    def load(self, built: Built) -> HostKernel:
        """Load the library."""
        kernel = HostKernel(built)
        self._kernels += 1
        return kernel

    def statistics(self) -> Mapping[str, int]:
        """Count kernels, and how often the disk had one."""
        return {
            "kernels": self._kernels,
            "cache hits": self._found,
            "cache misses": self._compiled,
        }


def _loaded(built: Built, *, alone: bool) -> ctypes.CDLL:
    """Load a library from where it is, or one of its own from a file that goes at once."""
    mode = os.RTLD_LOCAL | os.RTLD_NOW
    if built.folder is not None and not alone:
        return ctypes.CDLL(str(built.folder / compiler.LIBRARY), mode=mode)
    with TemporaryDirectory(prefix="accel_lab-") as folder:
        path = Path(folder, compiler.LIBRARY)
        path.write_bytes(built.library)
        return ctypes.CDLL(str(path), mode=mode)


def _run(
    name: str,
    launch: Any,
    printed: Any,
    at: int,
    grid: Triple,
    block: Triple,
    how: tuple[bool, int],
) -> None:
    failure = launch(at, *grid, *block, *how)
    if printed is not None and (text := printed()):
        sys.stdout.write(text.decode(errors="replace"))
        sys.stdout.flush()
    if failure is not None:
        raise UserCodeError(f"{name}: {failure.decode()}")


def _address(array: Any) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
