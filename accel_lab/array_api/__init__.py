"""The array API standard over handles: what `ref.__array_namespace__()` returns.

Its functions take handles, send messages to the device that holds them, and return handles at once.
They wait only where the standard asks for Python's own values. Names, signatures and dtypes are the
standard's, version 2025.12: https://data-apis.org/array-api/2025.12/

Runs in the notebook's process.
"""

import math

from accel_lab.array_api import fourier
from accel_lab.array_api import linalg as linalg
from accel_lab.array_api.creation import *  # noqa: F403 - the standard has one flat namespace
from accel_lab.array_api.devices import use_device as use_device
from accel_lab.array_api.dtypes import *  # noqa: F403 - as above
from accel_lab.array_api.elementwise import *  # noqa: F403 - as above
from accel_lab.array_api.information import __array_namespace_info__ as __array_namespace_info__
from accel_lab.array_api.linear_algebra import *  # noqa: F403 - as above
from accel_lab.array_api.manipulation import *  # noqa: F403 - as above
from accel_lab.array_api.searching import *  # noqa: F403 - as above
from accel_lab.array_api.sets import *  # noqa: F403 - as above
from accel_lab.array_api.sorting import *  # noqa: F403 - as above
from accel_lab.array_api.statistics import *  # noqa: F403 - as above
from accel_lab.array_api.version import VERSION as VERSION

__array_api_version__ = VERSION
e, inf, nan, pi = math.e, math.inf, math.nan, math.pi
fft, newaxis = fourier, None
