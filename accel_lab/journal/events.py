"""What happens to a journal, as facts on the event stream."""

from accel_lab.actor.events import Event


class JournalFailed(Event, frozen=True):
    """A journal's store does not take what it should; it is tried again, and nobody waits."""

    store: str
    error: str


class JournalResumed(Event, frozen=True):
    """A journal's store takes entries again; `dropped` were lost since it had failed."""

    store: str
    seconds: float
    dropped: int


class JournalDropped(Event, frozen=True):
    """Entries were lost because too many waited for the journal's store."""

    store: str
    entries: int
