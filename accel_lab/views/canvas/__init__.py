"""The live canvas: a simulation that is stepped, painted and set from the page.

Runs in the notebook's process.
"""
