"""Sparse matrices on the host, by SciPy."""

from accel_lab.backends.host.sparse.conversion import HostConversion
from accel_lab.backends.host.sparse.products import HostProducts


class HostSparse(HostConversion, HostProducts):
    """Calls SciPy at once: on the host, what is enqueued is done."""
