"""The `sparse` library on the host: SciPy's sparse arrays.

Runs in a context's process.
"""
