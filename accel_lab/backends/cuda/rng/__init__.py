"""The `rng` library on CUDA.

Runs in a context's process.
"""
