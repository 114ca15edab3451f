"""What happened to devices and how they looked: frozen facts for every listener.

What happens to a device is had from here, too: `from accel_lab.compute import events`.

Runs in both.
"""

from accel_lab.compute.events.lifecycle import BuffersRebuilt as BuffersRebuilt
from accel_lab.compute.events.lifecycle import CircuitClosed as CircuitClosed
from accel_lab.compute.events.lifecycle import CircuitOpened as CircuitOpened
from accel_lab.compute.events.lifecycle import ContextExited as ContextExited
from accel_lab.compute.events.lifecycle import ContextLost as ContextLost
from accel_lab.compute.events.lifecycle import ContextStarted as ContextStarted
from accel_lab.compute.events.lifecycle import CopyInserted as CopyInserted
from accel_lab.compute.events.lifecycle import DeviceResumed as DeviceResumed
from accel_lab.compute.events.lifecycle import DeviceSuspended as DeviceSuspended
from accel_lab.compute.events.lifecycle import GenerationChanged as GenerationChanged
from accel_lab.compute.events.lifecycle import LibraryRestarted as LibraryRestarted
from accel_lab.compute.events.lifecycle import OutputPrinted as OutputPrinted
from accel_lab.compute.events.lifecycle import RequestFailed as RequestFailed
from accel_lab.compute.events.lifecycle import SuspensionFailed as SuspensionFailed
