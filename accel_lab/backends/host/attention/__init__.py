"""Attention on the host, by NumPy.

Runs in a context's process.
"""
