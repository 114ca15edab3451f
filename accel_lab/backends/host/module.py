"""Modules on the host: one shared library of several kernels."""

from collections.abc import Mapping

from accel_lab.backends.host.jit import HostJit
from accel_lab.backends.host.kernel import Built, HostKernel, HostLibrary
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.jit.module_globals import declared_in
from accel_lab.libraries.jit.signature import parameters_of
from accel_lab.libraries.module.messages import Build, ModuleFacts


class HostCode:
    """A library that is loaded, with all its kernels."""

    def __init__(self, built: Built) -> None:
        self._library = HostLibrary(built)
        self._names = built.program.names
        self.nbytes = self._library.nbytes

    def facts(self) -> ModuleFacts:
        """Return what is known of it."""
        built = self._library.built
        tables = (parameters_of(self._library.table(i)) for i in range(len(self._names)))
        types = (tuple(one.text for one in table) for table in tables)
        return ModuleFacts(
            kernels=dict(zip(self._names, types, strict=True)),
            variables=declared_in((built.program.source, *built.program.headers.values())),
            log=built.log,
            cached=built.cached,
        )

    def kernel(self, name: str, parameters: str) -> HostKernel:
        """Return a kernel.

        Raises:
            InvalidArgument: there is none of this name, or types are given that the source tells.
        """
        if name not in self._names:
            known = ", ".join(self._names)
            raise InvalidArgument(f"the module has no kernel {name!r}; it has: {known}")
        if parameters:
            raise InvalidArgument(f"the source tells the parameters of {name}; leave them out")
        return HostKernel(self._library, self._names.index(name))


class HostModule:
    """Compiles as `jit` does; what was compiled before is found on disk."""

    def __init__(self) -> None:
        self._jit = HostJit()
        self._modules = 0

    def build(self, program: Build) -> Built:
        """Compile, or find it; any thread.

        Raises:
            CompileError: it does not compile, or there is no compiler.
        """
        return self._jit.build(program)

    def loaded(self, built: Built) -> HostCode:
        """Load the library."""
        code = HostCode(built)
        self._modules += 1
        return code

    def statistics(self) -> Mapping[str, int]:
        """Count modules."""
        return {"modules": self._modules}
