"""What a collective operation fails with."""

from accel_lab.errors import AccelError, GroupAborted


class CollectiveAborted(GroupAborted):
    """A rank of a collective operation failed or was late; no rank has a result of it.

    The world makes a new communicator by itself; its epoch is then one higher.
    """

    remedy = (
        "Look at reason, and at what the devices of the missing ranks were doing. The world heals "
        "by itself: call it again."
    )


class CommunicatorLost(AccelError):
    """A context has no such communicator: it was replaced, or the communicator was left."""

    remedy = "Call it again: the world makes a new communicator by itself."
