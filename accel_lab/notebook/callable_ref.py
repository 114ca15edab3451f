"""A function, a class or another object that can be called, and stays in a context."""

from collections.abc import Callable
from typing import Any

from accel_lab.compute.user_code.pickler import FOUND_THERE
from accel_lab.notebook.object_ref import ObjectRef


class CallableRef(ObjectRef):
    """Stands for what can be called in a device's context; a call of it runs there.

    Arrays among the arguments are the device's there, and arrays in the answer stay on the device:
    they come back as AccelRefs, as those of `device.run`. All else is pickled.
    """

    def __init__(self, *made: Any) -> None:
        *made_of, call = made
        super().__init__(*made_of)
        self._call: Callable[[ObjectRef, tuple[Any, ...], dict[str, Any]], Any] = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it where it is; blocks until it has returned. Ctrl-C interrupts its Python code.

        It finds the notebook's names as a function of a cell does, and what it declares `global`
        is bound in the notebook.

        Raises:
            UserCodeError: what it raised, with its lines.
            StaleRef: it is gone, with its context or otherwise.
        """
        self._require()
        return self._call(self, args, kwargs)


FOUND_THERE[CallableRef] = FOUND_THERE[ObjectRef]
