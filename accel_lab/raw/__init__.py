"""Vendors' handles for your own code on a device: `raw.cublas()` inside `gpu.run` or a `%%gpu` cell.

Runs in a context's process.
"""

from accel_lab.raw.handles import cublas as cublas
from accel_lab.raw.handles import cublas_lt as cublas_lt
from accel_lab.raw.handles import cudnn as cudnn
from accel_lab.raw.handles import cufft as cufft
from accel_lab.raw.handles import cusolver as cusolver
from accel_lab.raw.handles import cusparse as cusparse
from accel_lab.raw.handles import stream as stream
