"""One file or folder per library: its messages, the Protocol that a backend meets, and its actor.

Each message has a lower-case function beside it that sends it to its operands' device. What stands
here is a library, but for `authoring`: no list names it.

Runs in both.
"""

from accel_lab.compute.actors.digest import DigestActor
from accel_lab.compute.actors.fault import FaultActor
from accel_lab.compute.actors.run import RunActor
from accel_lab.compute.actors.transfer import DownloadActor, UploadActor
from accel_lab.compute.execution.launch import LibraryActor
from accel_lab.compute.message.operators import Operators
from accel_lab.libraries.authoring.default_actor import actor_of
from accel_lab.library_modules import LIBRARIES, module_of

_MODULES = {name: module_of(name) for name in LIBRARIES}
globals().update(_MODULES)  # the module that has the names, and not its folder

ACTORS: list[type[LibraryActor]] = [
    UploadActor,
    DownloadActor,
    DigestActor,
    RunActor,
    FaultActor,
    *(actor_of(name, module) for name, module in _MODULES.items()),
]
"""The library actors of every context, in the order in which they start."""

Operators.functions = _MODULES["array"]
