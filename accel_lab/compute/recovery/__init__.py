"""Making buffers again after a loss.

Runs in the notebook's process.
"""
