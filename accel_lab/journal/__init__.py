"""What devices were sent, kept beyond them: stores, reading, running it again, explaining.

Runs in the notebook's process.
"""
