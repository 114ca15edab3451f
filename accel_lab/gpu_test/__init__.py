"""Whether accel_lab works on the machine of its user: what `accel-lab gpu-test` runs.

A message of each library in every dtype that the backend's table has for it, beside NumPy and SciPy
here; then transfers, a kill, an illegal address, and a replay. It needs nothing but the package.
"""

from accel_lab.gpu_test.report import Report as Report
from accel_lab.gpu_test.suite import run as run
