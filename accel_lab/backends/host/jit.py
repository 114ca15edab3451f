"""Kernels on the host: compiled to shared libraries by the system's compiler, or found on disk."""

import json
import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from accel_lab.backends.host import compiler
from accel_lab.backends.host.kernel import Built, HostKernel, HostLibrary
from accel_lab.compute.machine.disk_cache import DiskCache, cache_folder, key_of
from accel_lab.libraries.jit.file_contents import newest_ns, sums_of
from accel_lab.libraries.jit.program import Program

FORMAT = 6
_LOG = "log.txt"
_INCLUDED = "included.json"


class HostJit:
    """Compiles with the system's C++ compiler; what it made before it finds on disk."""

    def __init__(self) -> None:
        self._cache = DiskCache(cache_folder() / "host")
        self._kernels = 0
        self._found = self._compiled = 0

    def build(self, program: Program) -> Built:
        """Compile, or find it; any thread.

        Raises:
            CompileError: it does not compile, or there is no compiler.
        """
        built = self._build(program)
        self._found += built.cached
        self._compiled += not built.cached
        return built

    def _build(self, program: Program) -> Built:
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
            program.names,
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

    def _keep(self, key: str, program: Program, made: compiler.Compiled) -> Path | None:
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
        kernel = HostKernel(HostLibrary(built))
        self._kernels += 1
        return kernel

    def statistics(self) -> Mapping[str, int]:
        """Count kernels, and how often the disk had one."""
        return {
            "kernels": self._kernels,
            "cache hits": self._found,
            "cache misses": self._compiled,
        }
