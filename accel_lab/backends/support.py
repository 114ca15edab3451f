"""The dtypes that operations have on every backend; a backend's own table has what differs."""

from collections.abc import Mapping

import accel_lab.libraries  # noqa: F401 - the messages of all libraries
from accel_lab.compute.message.support import name_of
from accel_lab.libraries.authoring.registration import messages

COMMON: Mapping[str, frozenset[str]] = {
    name_of(kind): kind.dtypes for kind in messages() if kind.dtypes is not None
}
"""What the messages say themselves, as `dtypes`."""
