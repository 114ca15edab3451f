"""What square brackets do: `taking` parts of a buffer, and `assigning` to them.

Runs in both.
"""

from accel_lab.libraries.array.indexing.assigning import *  # noqa: F403 - of one subject
from accel_lab.libraries.array.indexing.taking import *  # noqa: F403 - as above
