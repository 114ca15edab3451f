"""TensorRT: engines that are built from ONNX models, kept in files, and executed.

Runs in both.
"""

from accel_lab.libraries.tensorrt.library import *  # noqa: F403 - tensorrt.library is tensorrt
