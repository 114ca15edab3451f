"""Which message ended a context, found by running what was in flight again."""
