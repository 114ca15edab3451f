"""ONNX graphs that run as messages: `model = onnx.load(path, device)`, `y = model(x)`.

An operator is made of the messages of `array`, `blas`, `dnn` and other libraries, so it runs on
every backend. What a graph computes of shapes is computed with NumPy. The package `onnx` reads the
file; what the file asks for and there is not, is refused when it is loaded.

Runs in the notebook's process.
"""

from accel_lab.onnx import operators as operators
from accel_lab.onnx.calibration import Entropy as Entropy
from accel_lab.onnx.calibration import MinMax as MinMax
from accel_lab.onnx.calibration import Observer as Observer
from accel_lab.onnx.calibration import Percentile as Percentile
from accel_lab.onnx.calibration import quantize as quantize
from accel_lab.onnx.errors import ModelError as ModelError
from accel_lab.onnx.errors import UnsupportedModel as UnsupportedModel
from accel_lab.onnx.export import export as export
from accel_lab.onnx.file import load as load
from accel_lab.onnx.model import Model as Model
from accel_lab.onnx.model import Port as Port
