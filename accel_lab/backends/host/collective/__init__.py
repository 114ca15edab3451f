"""Collective operations of contexts on the host, through memory that they share.

Runs in a context's process.
"""
