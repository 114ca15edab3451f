"""Journals in stores that have no transactions, of cells: partitions of bytes in order of a key.

Runs in the notebook's process.
"""
