"""Recorded programs as CUDA graphs.

Runs in a context's process.
"""
