"""What ranks that train together exchange, and in which order.

Runs in the notebook's process.
"""
