"""Arrays: making them, arithmetic, reductions, indexing.

Runs in both.
"""
