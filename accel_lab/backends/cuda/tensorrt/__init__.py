"""Engines of TensorRT on cuda: they are loaded and executed.

Runs in a context's process.
"""
