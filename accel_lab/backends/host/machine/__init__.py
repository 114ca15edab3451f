"""What the host backend knows of the machine: its nodes of memory, and processes.

Runs in both.
"""
