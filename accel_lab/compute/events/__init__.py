"""What happened to devices and how they looked: frozen facts for every listener.

Runs in both.
"""
