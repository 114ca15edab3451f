"""What kernels of accel_lab's own have in common: the type of an element, and one argument.

Runs in a context's process.
"""
