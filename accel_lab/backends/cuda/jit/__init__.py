"""The `jit` library on CUDA: NVRTC and what it compiled.

Runs in a context's process.
"""
