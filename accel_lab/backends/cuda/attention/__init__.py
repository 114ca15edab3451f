"""Attention on cuda: cuDNN's where it has the mask, else products by cuBLAS and CuPy's kernels.

Few queries to pages that cuDNN lacks are attended by a kernel of our own.

Runs in a context's process.
"""
