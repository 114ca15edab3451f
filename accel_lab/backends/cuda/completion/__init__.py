"""How a thread waits for the card.

Runs in a context's process.
"""
