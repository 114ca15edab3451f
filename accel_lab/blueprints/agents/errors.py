"""The errors of agents, beside those of the patterns below them."""

from accel_lab.errors import AccelError


class LeaseLost(AccelError, fields=("lease",)):
    """A lease on a shared state is over, so what came with it was not done.

    Attributes:
        lease: its number.
    """

    remedy = "Acquire another lease and begin again; for long work renew it, or raise lease_s."
    lease: int = 0


class UnboundedCycle(AccelError, fields=("path",)):
    """A graph of an agent may go round for ever, so it was refused.

    Attributes:
        path: the nodes of the cycle; the first one comes again at its end.
    """

    remedy = "Give one node of the path visits=: how often it may run at most."
    path: tuple[str, ...] = ()


class VisitsExceeded(AccelError, fields=("node", "visits")):
    """A node of an agent's graph was to run once more than it may, so the run failed.

    Attributes:
        node: its name.
        visits: how often it may run.
    """

    remedy = "Raise the node's visits=, or correct the branch that led to it again."
    node: str = ""
    visits: int = 0


class MergeConflict(AccelError, fields=("key", "nodes")):
    """Nodes that ran beside each other wrote the same key of a state, which has no reducer.

    Attributes:
        key: of the state.
        nodes: who wrote it.
    """

    remedy = "Declare a reducer for the key, or have one node alone write it."
    key: str = ""
    nodes: tuple[str, ...] = ()
