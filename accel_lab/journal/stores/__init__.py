"""Where a journal is kept: memory, a file, a database, Redis; groups of bytes, proven whole.

Runs in the notebook's process.
"""
