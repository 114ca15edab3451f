"""One device's requests: numbered, queued, sent, awaited, answered once.

Runs in the notebook's process.
"""
