"""What arrays of a device hold: reductions in one pass, and chains of passes.

Runs in the notebook's process.
"""
