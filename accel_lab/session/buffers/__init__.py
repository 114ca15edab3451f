"""How buffers can be had again, and the handles that wait for that.

Runs in the notebook's process.
"""
