"""What views show, apart from how: facts gathered from a system.

Runs in the notebook's process.
"""
