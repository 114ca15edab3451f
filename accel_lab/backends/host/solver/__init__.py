"""The `solver` library on the host: LAPACK through NumPy and SciPy.

Runs in a context's process.
"""
