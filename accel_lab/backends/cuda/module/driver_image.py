"""A fatbin that only the driver can open: what is in it, as the driver tells it."""

import contextlib
import ctypes

from cupy.cuda import driver

from accel_lab.backends.cuda.graph.driver import call
from accel_lab.libraries.jit.elf import symbols_for
from accel_lab.libraries.jit.module_globals import Place
from accel_lab.libraries.module.parameter_types import Place as Parameter

_POINTER = ctypes.c_void_p


class DriverImage:
    """A fatbin that is loaded; it is given back with the last kernel that has it.

    Attributes:
        nbytes: the size of the file.
    """

    def __init__(self, fatbin: bytes) -> None:
        self.nbytes = len(fatbin)
        self._module: int = driver.moduleLoadData(fatbin)

    def kernels(self) -> dict[str, tuple[Parameter, ...]]:
        """Return the kernels by their symbols, and where the parameters of each lie."""
        count = ctypes.c_uint()
        call("cuModuleGetFunctionCount", ctypes.byref(count), _POINTER(self._module))
        found = (_POINTER * max(count.value, 1))()
        call("cuModuleEnumerateFunctions", found, count, _POINTER(self._module))
        return {_name(one): _places(one) for one in found[: count.value] if one is not None}

    def function(self, symbol: str) -> int:
        """Return the driver's handle of a kernel."""
        function: int = driver.moduleGetFunction(self._module, symbol)
        return function

    def place(self, variable: str) -> Place | None:
        """Find a variable."""
        address, nbytes = ctypes.c_uint64(), ctypes.c_size_t()
        for symbol in symbols_for(variable):
            with contextlib.suppress(driver.CUDADriverError):
                call(
                    "cuModuleGetGlobal_v2",
                    ctypes.byref(address),
                    ctypes.byref(nbytes),
                    _POINTER(self._module),
                    symbol.encode(),
                )
                return Place(address.value, nbytes.value)
        return None

    def __del__(self) -> None:
        if hasattr(self, "_module"):
            with contextlib.suppress(driver.CUDADriverError):
                driver.moduleUnload(self._module)


def _name(function: int) -> str:
    name = ctypes.c_char_p()
    call("cuFuncGetName", ctypes.byref(name), _POINTER(function))
    return (name.value or b"").decode(errors="replace")


def _places(function: int) -> tuple[Parameter, ...]:
    """Ask for one parameter after the other, until there is none."""
    found: list[Parameter] = []
    offset, nbytes = ctypes.c_size_t(), ctypes.c_size_t()
    with contextlib.suppress(driver.CUDADriverError):
        while True:
            number = ctypes.c_size_t(len(found))
            told = ctypes.byref(offset), ctypes.byref(nbytes)
            call("cuFuncGetParamInfo", _POINTER(function), number, *told)
            found.append(Parameter(offset.value, nbytes.value))
    return tuple(found)
