"""The `blas` library on CUDA: cuBLAS, and what it does not have.

Runs in a context's process.
"""
