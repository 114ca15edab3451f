"""Sparse matrices on the host, by SciPy."""

from accel_lab.backends.host.sparse.algebra import HostAlgebra
from accel_lab.backends.host.sparse.blocked_ell import HostBlockedEll
from accel_lab.backends.host.sparse.conversion import HostConversion
from accel_lab.backends.host.sparse.factors import HostFactorizations
from accel_lab.backends.host.sparse.products import HostProducts
from accel_lab.backends.host.sparse.structured import HostStructured
from accel_lab.backends.host.sparse.systems import HostSystems
from accel_lab.backends.host.sparse.triangular import HostTriangular


class HostSparse(
    HostConversion,
    HostProducts,
    HostAlgebra,
    HostTriangular,
    HostSystems,
    HostStructured,
    HostBlockedEll,
    HostFactorizations,
):
    """Calls SciPy at once: on the host, what is enqueued is done."""
