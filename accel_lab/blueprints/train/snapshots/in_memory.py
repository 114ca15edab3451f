"""The last snapshot, in the notebook's memory."""

from accel_lab.blueprints.train.snapshots.snapshot import Asked, Snapshot


class InMemory:
    """Keeps the last snapshot that is whole; it is gone with the notebook's process."""

    def __init__(self) -> None:
        self._whole: Snapshot | None = None
        self._asked: Asked | None = None

    def require_own(self) -> None:
        """Do nothing: one that is new has nothing."""

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
