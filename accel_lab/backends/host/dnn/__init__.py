"""Layers of neural networks on the host, by NumPy and SciPy.

Runs in a context's process.
"""
