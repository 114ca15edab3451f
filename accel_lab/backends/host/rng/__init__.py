"""The `rng` library on the host.

Runs in a context's process.
"""
