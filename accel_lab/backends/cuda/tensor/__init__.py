"""Tensors on cuda: by cuTENSOR where it is installed, else by cuBLAS and CuPy.

Runs in a context's process.
"""
