"""Layers of neural networks on cuda: convolutions by cuDNN or cuBLAS, the rest by CuPy.

Runs in a context's process.
"""
