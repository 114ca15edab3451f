"""What counts as an array and a dtype: NumPy's, PyTorch's, the notebook's CUDA arrays.

Runs in both.
"""
