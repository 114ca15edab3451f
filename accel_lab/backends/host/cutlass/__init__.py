"""The `cutlass` library on the host: NumPy, and the C++ compiler for ends of the user's.

Runs in a context's process.
"""
