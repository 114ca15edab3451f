"""Whole programs of a kind, built from the public API alone.

Runs in the notebook's process.
"""
