"""What a process sends to dashboards, in lines, and how they read it.

Runs in the notebook's process; `client` reads it in others.
"""
