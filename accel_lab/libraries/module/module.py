"""A module as the notebook holds it: what it is made of, and its kernels."""

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from accel_lab.compute.device import Device
from accel_lab.compute.message.handle import Handle
from accel_lab.errors import CompileError, InvalidArgument, StaleRef
from accel_lab.libraries.jit.launchable import Launchable
from accel_lab.libraries.jit.messages import CompiledKernel, KernelOf, LoadedModule
from accel_lab.libraries.jit.module_globals import Globals
from accel_lab.libraries.module.messages import ModuleFacts
from accel_lab.uncopied import Address

_FINAL = (CompileError, InvalidArgument)


class ModuleKernel(Launchable):
    """A kernel of a module; call it to launch it, as a `jit.Kernel`.

    Attributes:
        module: the module that has it, whose globals it has.
    """

    _instead = "take it out of a module where you need it"

    def __init__(
        self, module: "Module", name: str, make: Callable[[], Handle[CompiledKernel]]
    ) -> None:
        super().__init__(module.device, name, make)
        self.module = module
        self.globals = module.globals


class Module(Address):
    """Several kernels and their variables on one device: `module["scale"]` is a kernel.

    Its kernels can be called before it is loaded: the launches wait for it. When its context has
    been lost it is made again by itself. Any thread may call; what waits says so.

    Attributes:
        device: where it is.
        globals: its `__constant__` and `__device__` variables that have buffers, for all kernels.
        ref: the handle of the loaded module.
    """

    _instead = "load it where you need it"

    def __init__(
        self,
        device: Device,
        make: Callable[[], Handle[LoadedModule]],
        declared: Callable[[], Mapping[str, bool] | None] | None = None,
    ) -> None:
        self.device = device
        self._make = make
        self._kernels: dict[tuple[str, str], ModuleKernel] = {}
        self._is_unloaded = False
        self.ref = make()
        self.globals = Globals(device, self._variables if declared is None else declared)

    def __getitem__(self, name: str) -> ModuleKernel:
        """Return a kernel by its name, template arguments included, or by its symbol."""
        return self.kernel(name)

    def kernel(self, name: str, parameters: str = "") -> ModuleKernel:
        """Return a kernel; does not block.

        Parameters:
            parameters: its C++ types, "float* y, const float* x, int n": only for an `extern "C"`
                kernel of a binary, which does not tell them.

        Raises:
            StaleRef: the module was unloaded. That it has no such kernel, or that the types do not
                fit, is the failure of the kernel.
        """
        self._require_loaded()
        key = name, parameters
        known = self._kernels.get(key)
        if known is None or isinstance(known.error, _FINAL):
            make = partial(self._kernel, name, parameters)
            known = self._kernels[key] = ModuleKernel(self, name, make)
        return known

    def facts(self, timeout_s: float | None = None) -> ModuleFacts:
        """Return its kernels and variables; blocks until it is loaded.

        Raises:
            CompileError: it does not compile or link.
            StaleRef: it was unloaded.
        """
        facts: ModuleFacts = self._current().result(timeout_s).said
        return facts

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of its kernels; blocks until it is loaded."""
        return tuple(self.facts().kernels)

    def result(self, timeout_s: float | None = None) -> "Module":
        """Block until it is loaded, and return it.

        Raises:
            CompileError: it does not compile or link.
            TimeoutError: not within `timeout_s` seconds.
        """
        self.ref.result(timeout_s)
        return self

    def __await__(self) -> Generator[Any, None, "Module"]:
        """Wait in the running loop until it is loaded."""
        yield from self.ref.__await__()
        return self

    @property
    def done(self) -> bool:
        """Whether it is loaded, or failed; never blocks."""
        return self.ref.done

    @property
    def error(self) -> BaseException | None:
        """Why it could not be loaded, or None; never blocks."""
        return self.ref.error

    def unload(self) -> None:
        """Give back its code and variables behind what was launched; later launches are refused."""
        self._is_unloaded = True
        for kernel in self._kernels.values():
            kernel.ref.free()
        self._kernels.clear()
        self.ref.free()

    def _kernel(self, name: str, parameters: str) -> Handle[CompiledKernel]:
        return self.device.ask(KernelOf(self._current(), name, parameters))

    def _current(self) -> Handle[LoadedModule]:
        """Return the handle of the module, made again where its context was lost."""
        self._require_loaded()
        if not self.ref.is_valid and not isinstance(self.ref.error, _FINAL):
            self.ref = self._make()
        return self.ref

    def _require_loaded(self) -> None:
        if self._is_unloaded:
            raise StaleRef("the module was unloaded; load it again", buffer=self.ref.id)

    def _variables(self) -> Mapping[str, bool] | None:
        return self.facts().variables

    def __repr__(self) -> str:
        if self._is_unloaded:
            state = "unloaded"
        elif not self.ref.done:
            state = "loading"
        elif self.ref.failed:
            state = f"failed: {type(self.ref.error).__name__}"
        else:
            state = ", ".join(self.ref.said.kernels) if self.ref.is_valid else "to be loaded again"
        return f"<Module of {self.device.name}: {state}>"
