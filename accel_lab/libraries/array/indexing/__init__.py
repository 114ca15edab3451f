"""What square brackets do: `taking` parts of a buffer, `assigning` to them, and `masking`.

Runs in both.
"""

from accel_lab.libraries.array.indexing.assigning import *  # noqa: F403 - of one subject
from accel_lab.libraries.array.indexing.masking import *  # noqa: F403 - as above
from accel_lab.libraries.array.indexing.taking import *  # noqa: F403 - as above
