"""The dashboard: a server and a page of its own for every system of this user.

Runs in the notebook's process, or in that of `accel-lab dashboard`.
"""
