"""Kernels on the host that are loaded: functions of a shared library, run by the dispatcher."""

import _ctypes
import ctypes
import os
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from accel_lab.backends.host import compiler
from accel_lab.errors import UserCodeError
from accel_lab.libraries.jit.arguments import Arguments, keeping
from accel_lab.libraries.jit.elf import Variable, symbols_for, variables_of
from accel_lab.libraries.jit.limits import PLAIN, LaunchOptions, Limits
from accel_lab.libraries.jit.messages import KernelFacts, Triple
from accel_lab.libraries.jit.module_globals import Place, declared_in
from accel_lab.libraries.jit.program import Program
from accel_lab.libraries.jit.signature import TABLE, parameters_of, table_bytes, table_of

SHARED_LIMIT = 227 << 10
TOGETHER = 16384  # threads, each with a stack of its own
_NO_GRID = (
    "is for a kernel whose source has this_grid(); on the host no other may wait for all its blocks"
)
_NO_MAPS = (
    "is for a card of compute capability 9.0 or higher, whose TMA fetches its tiles; on the host "
    "give the buffer, and index it"
)
_PRINTS = re.compile(r"\b(?:printf|puts|putchar)\b")


class Built(NamedTuple):
    """A library.

    Attributes:
        library: its bytes.
        folder: where its files are, if the disk took them.
        source: where the source is that debuggers look for; empty if the disk did not take it.
    """

    program: Program
    library: bytes
    folder: Path | None
    source: str
    log: str
    cached: bool


class HostLibrary:
    """A shared library that is loaded; it goes with the last of its kernels.

    Attributes:
        built: what it was loaded from, without the bytes.
        nbytes: the size of the code.
        printed: returns what kernels have printed; None if none can.
    """

    def __init__(self, built: Built) -> None:
        self.built = built._replace(library=b"")
        self.nbytes = len(built.library)
        texts = built.program.source, *built.program.headers.values()
        # Of two handles of one library both would have the same variables.
        own = bool(declared_in(texts))
        self._library = _loaded(built, alone=own)
        self._variables: dict[str, Variable] = variables_of(built.library) if own else {}
        self._base = self._address(TABLE) - self._variables[TABLE].address if own else 0
        self.printed: Any = None
        if _PRINTS.search("".join(texts)):
            self.printed = self.function(compiler.PRINTED)
            self.printed.restype = ctypes.c_char_p

    def function(self, symbol: str) -> Any:
        """Return a function, to be called while this object lives."""
        return getattr(self._library, symbol)

    def table(self, number: int) -> bytes:
        """Return the table of a kernel's parameters."""
        at = self._address(table_of(number))
        count = ctypes.c_uint32.from_address(at + 4).value
        return ctypes.string_at(at, table_bytes(count))

    def place(self, variable: str) -> Place | None:
        """Find a variable of the source."""
        for symbol in symbols_for(variable):
            if (found := self._variables.get(symbol)) is not None:
                return Place(self._base + found.address, found.nbytes, found.writable)
        return None

    def _address(self, symbol: str) -> int:
        return ctypes.addressof(ctypes.c_char.in_dll(self._library, symbol))

    def __del__(self) -> None:
        if hasattr(self, "_library"):
            _ctypes.dlclose(self._library._handle)  # noqa: SLF001 - ctypes has no other way


class HostKernel:
    """A kernel of a library, by its number among those of the program."""

    def __init__(self, library: HostLibrary, number: int = 0) -> None:
        self._library = library
        program = library.built.program
        self.name = program.names[number]
        self.nbytes = library.nbytes
        parameters = parameters_of(library.table(number))
        self.arguments = Arguments(self.name, parameters, _address)
        read_only = tuple([one.read_only for one in parameters])
        why_not = "" if compiler.waits_for_grid(program) else _NO_GRID
        self.limits = Limits(
            self.name,
            SHARED_LIMIT,
            read_only=read_only,
            together=TOGETHER,
            why_not=why_not,
            no_maps=_NO_MAPS,
        )
        self._launch = library.function(compiler.launch_of(number))
        self._launch.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 6]
        self._launch.argtypes += [ctypes.c_bool, ctypes.c_size_t]
        self._launch.restype = ctypes.c_char_p
        self._printed = library.printed

    def enqueue(
        self,
        grid: Triple,
        block: Triple,
        shared_bytes: int,
        stream: Any,  # noqa: ARG002 - what is enqueued is done
        options: LaunchOptions,
    ) -> None:
        """Run every block to its end, one after another also those of a cluster.

        What was enqueued before has ended, so that a kernel never waits for one ahead.

        Raises:
            InvalidArgument: more shared memory than there is, or more threads at once.
            UserCodeError: the threads of a block wait for each other for ever, or a lane asks for
                the value of one that is not in its mask.
        """
        self.limits.check(block, shared_bytes)
        if options is not PLAIN:
            self.limits.check_options(grid, block, options)
        how = options.cooperative, shared_bytes
        _run(self.name, self._launch, self._printed, self.arguments.at, grid, block, how)

    def again(
        self,
        grid: Triple,
        block: Triple,
        shared_bytes: int,
        stream: Any,  # noqa: ARG002 - what is enqueued is done
        options: LaunchOptions,
    ) -> Callable[[], None]:
        """Return what runs it once more, with the arguments that are packed now."""
        at, memory = self.arguments.copy()
        how = options.cooperative, shared_bytes
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
        return self._library.place(variable)

    def copy(self, to: int, source: int, nbytes: int, stream: Any) -> None:  # noqa: ARG002 - it is done
        """Copy memory."""
        ctypes.memmove(to, source, nbytes)

    def address_of(self, array: Any) -> int:
        """Return where an array begins."""
        return _address(array)

    def facts(self) -> KernelFacts:
        """Return what is known of it."""
        built = self._library.built
        return KernelFacts(
            name=self.name,
            parameters=tuple(p.text for p in self.arguments.parameters),
            log=built.log,
            cached=built.cached,
            binary=str(built.folder / compiler.LIBRARY) if built.folder else "",
            source=built.source,
            numbers={"code bytes": self.nbytes},
        )


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
