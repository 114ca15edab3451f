"""The user's operators on the host: compiled into loops, found on disk, called with arrays."""

import threading
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np

from accel_lab.backends.host.jit import HostJit
from accel_lab.backends.host.kernel import HostKernel
from accel_lab.backends.host.primitives.loops import LOOPS
from accel_lab.errors import CompileError
from accel_lab.libraries.jit.messages import Compile
from accel_lab.libraries.primitives.operators import TYPES, Operator


class Around(Protocol):
    """A loop in C++ around a function of the user's; equal ones make the same."""

    @property
    def called(self) -> str:
        """What the function is called."""

    def program(self) -> Compile:
        """Return what is to be compiled."""

    def __hash__(self) -> int: ...


class Loop(NamedTuple):
    """A loop of `loops` around an operator.

    Attributes:
        result: what the operator answers with, in C++; empty for an element.
    """

    name: str
    operator: Operator
    dtype: str
    result: str = ""

    @property
    def called(self) -> str:
        """What the operator is called."""
        return self.operator.name

    def program(self) -> Compile:
        """Return what is to be compiled."""
        kind = TYPES[self.dtype]
        text = LOOPS[self.name].replace("$T", kind).replace("$R", self.result or kind)
        text = text.replace("$op", self.operator.name)
        source = f'{self.operator.text(self.dtype)}#line 1 "the loop around an operator"\n{text}'
        return Compile(source, f"accel_lab_{self.name}")


class Functions:
    """The loops of one context; any thread."""

    def __init__(self) -> None:
        self._jit = HostJit()
        self._kernels: dict[Around, HostKernel] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kernels)

    def lacking(self, loops: Iterable[Around]) -> list[Around]:
        """Return those that are not loaded."""
        return [loop for loop in loops if loop not in self._kernels]

    def build(self, loops: Iterable[Around]) -> None:
        """Compile, or find on disk, and load.

        Raises:
            CompileError: an operator does not compile, or there is no compiler.
        """
        for loop in loops:
            try:
                built = self._jit.build(loop.program())
            except CompileError as error:
                name = loop.called
                text = f"{name} does not compile:\n{error.log or error}"
                raise CompileError(text, log=error.log, name=name) from None
            with self._lock:
                self._kernels[loop] = self._jit.load(built)

    def call(self, loop: Around, *arrays: Any, numbers: tuple[int, ...]) -> None:
        """Run a loop with arrays without gaps.

        Raises:
            CompileError: as `build`.
            UserCodeError: the operator fails.
        """
        if loop not in self._kernels:
            self.build([loop])
        whole = np.array(numbers, np.int64)
        self._kernels[loop].call(*(array.ctypes.data for array in (*arrays, whole)))

    def statistics(self) -> dict[str, int]:
        """Count loops, and how often the disk had one."""
        counted = self._jit.statistics()
        return {"plans": len(self), **{name: counted[name] for name in _COUNTED}}


_COUNTED = "cache hits", "cache misses"
