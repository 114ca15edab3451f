"""What the messages of attention mean, in the functions that NumPy and CuPy share.

Queries are in groups: those of one sequence that have their keys in common. Runs in a context's
process.
"""
