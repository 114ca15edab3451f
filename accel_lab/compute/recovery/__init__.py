"""Rebuilding buffers after a loss.

Runs in the notebook's process.
"""
