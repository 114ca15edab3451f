"""Products of matrices and vectors.

Runs in both.
"""
