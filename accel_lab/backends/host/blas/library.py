"""BLAS on the host, by NumPy's products and SciPy's BLAS."""

from accel_lab.backends.host.blas.halves import HostHalves
from accel_lab.backends.host.blas.scaled import HostScaled
from accel_lab.backends.host.blas.triangles import HostTriangles
from accel_lab.backends.host.blas.vectors import HostVectors


class HostBlas(HostScaled, HostVectors, HostHalves, HostTriangles):
    """Calls NumPy and SciPy at once: on the host, what is enqueued is done."""
