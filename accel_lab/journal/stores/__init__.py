"""Where a journal lies: memory, a file, a database, Redis; groups of bytes, proven whole.

Runs in the notebook's process.
"""
