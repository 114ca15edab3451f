"""Layers of neural networks on cuda: convolutions by cuDNN or cuBLAS, the rest by CuPy.

Layer and RMS norms of contiguous rows are one kernel of our own each.

Runs in a context's process.
"""
