"""The `blas` library on the host: NumPy's products, SciPy's BLAS.

Runs in a context's process.
"""
