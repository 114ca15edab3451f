"""The `sparse` library on cuda: cuSPARSE through CuPy.

Runs in a context's process.
"""
