"""The `array` library on the host: NumPy.

Runs in a context's process.
"""
