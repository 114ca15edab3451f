"""The last snapshot, in the notebook's memory."""

from accel_lab.blueprints.train.snapshots.snapshot import Asked, Snapshot
from accel_lab.errors import InvalidArgument


class InMemory:
    """Keeps the last snapshot that is whole; it is gone with the notebook's process."""

    def __init__(self) -> None:
        self._whole: Snapshot | None = None
        self._asked: Asked | None = None

    @property
    def last(self) -> int | None:
        """The step of the one that is whole."""
        return None if self._whole is None else self._whole.step

    def require_own(self, step: int) -> None:
        """Refuse what another trainer has kept.

        Raises:
            InvalidArgument: it is of a later step.
        """
        if self.last is not None and self.last > step:
            text = f"it has step {self.last} of another run: resume() goes on from there"
            raise InvalidArgument(f"InMemory: {text}, or give a new one")

    def take(self, asked: Asked) -> None:
        """Keep one; the one before has arrived by now, as a rule."""
        self.flush()
        self._asked = asked

    def newest(self) -> Snapshot | None:
        """Return the last one that is whole."""
        self.flush()
        return self._whole

    def flush(self) -> None:
        """Wait for the one on its way."""
        asked, self._asked = self._asked, None
        if asked is not None:
            self._whole = asked.arrived() or self._whole
