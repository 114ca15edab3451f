"""Which message ended a context, found by running what was in flight again.

Runs in the notebook's process, and in one of its own, which may be lost with its context.
"""
