"""Messages that a context computes together, as it sees them ahead.

Runs in a context's process.
"""
