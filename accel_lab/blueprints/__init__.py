"""What many build on devices, ready to use: patterns that serve models.

Runs in the notebook's process.
"""
