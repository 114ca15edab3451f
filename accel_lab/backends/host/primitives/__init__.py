"""The `primitives` library on the host: NumPy, and the C++ compiler for the user's operators.

Runs in a context's process.
"""
