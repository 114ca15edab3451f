"""Tensors whose axes have names: contraction, reduction, permutation, elementwise functions.

Runs in both.
"""

from accel_lab.libraries.tensor.library import *  # noqa: F403 - tensor.library is tensor
