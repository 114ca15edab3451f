"""What code in a context prints and displays, on its way to its cell.

Runs in both.
"""
