"""Effects on the frames of a video, as a graph of nodes.

Runs in the notebook's process.
"""
