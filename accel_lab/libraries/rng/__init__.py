"""Random numbers.

Runs in both.
"""
