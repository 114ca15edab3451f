"""INT8 by calibration: ranges are observed on the device, and written into the model.

Runs in the notebook's process.
"""

from accel_lab.onnx.calibration.observers import OBSERVERS as OBSERVERS
from accel_lab.onnx.calibration.observers import Entropy as Entropy
from accel_lab.onnx.calibration.observers import MinMax as MinMax
from accel_lab.onnx.calibration.observers import Observer as Observer
from accel_lab.onnx.calibration.observers import Percentile as Percentile
from accel_lab.onnx.calibration.quantization import quantize as quantize
