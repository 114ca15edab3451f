"""Which message ended a context, found by rerunning what was in flight.

Runs in the notebook's process, and in one of its own, which may be lost with its context.
"""
