"""The user's own kernels: compiled, launched.

Runs in both.
"""
