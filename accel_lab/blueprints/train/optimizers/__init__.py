"""What becomes of parameters, of their gradients.

Runs in the notebook's process.
"""
