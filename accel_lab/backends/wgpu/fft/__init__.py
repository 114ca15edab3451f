"""Fourier transforms on wgpu.

Runs in a context's process.
"""
