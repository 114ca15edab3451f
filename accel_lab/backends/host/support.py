"""Which operations the host has for which dtypes: all that the messages say."""

from collections.abc import Mapping

from accel_lab.backends.support import COMMON

SUPPORT: Mapping[str, frozenset[str]] = COMMON
