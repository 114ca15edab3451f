"""Networks to be trained, and what they are trained on.

Runs in the notebook's process.
"""
