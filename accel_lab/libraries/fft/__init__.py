"""Fourier transforms.

Runs in both.
"""

from accel_lab.libraries.fft.library import *  # noqa: F403 - fft.library is fft
