"""Vendors' handles for your own code in `gpu.run` and in `%%gpu` cells: `raw.cublas()`.

Runs in a context's process.
"""

from accel_lab.raw.handles import cublas as cublas
from accel_lab.raw.handles import cublas_lt as cublas_lt
from accel_lab.raw.handles import cudnn as cudnn
from accel_lab.raw.handles import cufft as cufft
from accel_lab.raw.handles import cusolver as cusolver
from accel_lab.raw.handles import cusparse as cusparse
from accel_lab.raw.handles import stream as stream
