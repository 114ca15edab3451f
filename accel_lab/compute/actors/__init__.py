"""The library actors of every context: transfer, digest, fault, run.

Runs in a context's process.
"""
