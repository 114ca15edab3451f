"""What views count of a scene, look by look.

Runs in the notebook's process.
"""
