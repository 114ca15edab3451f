"""What the host backend knows of the machine: its nodes of memory, and what a process took.

Runs in both.
"""
