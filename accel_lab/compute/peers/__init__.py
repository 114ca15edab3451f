"""The devices of one system as peers: who reaches whom, how fast, and what is copied for whom.

Runs in the notebook's process.
"""
