"""Memory on the host that is not NumPy's own.

Runs in a context's process.
"""
