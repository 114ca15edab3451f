"""Loops that train, and heal after faults.

Runs in the notebook's process.
"""
