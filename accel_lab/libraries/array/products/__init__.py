"""Products: of matrices and tensors, `matmul`, and as Einstein writes them, `einsum`.

Runs in both.
"""

from accel_lab.libraries.array.products.einsum import *  # noqa: F403 - of one subject
from accel_lab.libraries.array.products.matmul import *  # noqa: F403 - as above
