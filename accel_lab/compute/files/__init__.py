"""Arrays in files: where their bytes lie, how a part of them is read, and how they are written.

Runs in the notebook's process.
"""
