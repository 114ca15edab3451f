"""Kernels as text: the types of WGSL, functions it lacks, and jobs over arrays of any strides.

Runs in a context's process.
"""
