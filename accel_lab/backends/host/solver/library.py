"""Dense solvers on the host, by NumPy and SciPy's LAPACK."""

from accel_lab.backends.host.solver.factors import HostFactors
from accel_lab.backends.host.solver.spectra import HostSpectra
from accel_lab.backends.host.solver.systems import HostSystems


class HostSolver(HostFactors, HostSystems, HostSpectra):
    """Calls NumPy and SciPy at once: on the host, what is enqueued is done."""
