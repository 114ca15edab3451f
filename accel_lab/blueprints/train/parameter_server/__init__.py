"""Training at each device's own pace, around one that has the parameters.

Runs in the notebook's process.
"""
