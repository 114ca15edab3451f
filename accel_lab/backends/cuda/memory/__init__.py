"""Memory on cuda that is not the pool's.

Runs in a context's process.
"""
