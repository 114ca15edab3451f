"""Whole programs over the libraries, to use or to copy: each is built from the public API alone.

Runs in the notebook's process.
"""
