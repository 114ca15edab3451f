"""The `array` library on CUDA.

Runs in a context's process.
"""
