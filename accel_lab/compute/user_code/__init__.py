"""Calls of the user's functions: pickled, interrupted, failures explained.

Runs in both.
"""
