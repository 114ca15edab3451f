"""What a notebook adds to the library: cells that run where the arrays are.

Runs in the notebook's process.
"""
