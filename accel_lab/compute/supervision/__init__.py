"""Who starts a context, notices its loss and decides what next.

Runs in the notebook's process.
"""
