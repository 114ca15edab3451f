"""What many build on devices, ready to use: patterns that serve models, and a language model.

Runs in the notebook's process.
"""
