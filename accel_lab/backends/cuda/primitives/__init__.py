"""The `primitives` library on cuda: CUB's algorithms, compiled by cuda.compute and kept on disk.

Runs in a context's process.
"""
