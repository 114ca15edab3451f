"""The errors of agents, beside those of the patterns below them."""

from accel_lab.errors import AccelError


class LeaseLost(AccelError, fields=("lease",)):
    """A lease on a shared state is over, so what came with it was not done.

    Attributes:
        lease: its number.
    """

    remedy = "Acquire another lease and begin again; for long work renew it, or raise lease_s."
    lease: int = 0
