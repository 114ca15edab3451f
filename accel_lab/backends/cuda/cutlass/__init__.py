"""CUTLASS: its template, the kernels that are made of it, and operands as they read them.

Runs in a context's process.
"""
