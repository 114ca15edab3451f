"""What the messages of `dnn` mean, in the functions that NumPy and CuPy share.

Arrays are in the dtype that is computed in. Runs in a context's process.
"""
