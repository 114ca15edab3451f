"""A second system from the same moment: what it takes along, and how that gets there.

Runs in the notebook's process; `layout` also in the contexts'.
"""
