"""What all patterns are made of: requests, stages, calls, queues, statistics and decisions.

Runs in the notebook's process.
"""
