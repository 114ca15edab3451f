"""Layers of neural networks and their gradients.

Runs in both.
"""

from accel_lab.libraries.dnn.library import *  # noqa: F403 - dnn.library is dnn
