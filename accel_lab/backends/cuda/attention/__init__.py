"""Attention on cuda: cuDNN's where it has the mask, else products by cuBLAS and CuPy's kernels.

Runs in a context's process.
"""
