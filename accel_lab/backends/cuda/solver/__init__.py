"""The `solver` library on cuda: cuSOLVER and cuBLAS's stacks, on handles of its own.

Runs in a context's process.
"""
