"""Fourier transforms: cuFFT on `cuda`, SciPy's pocketfft on `host`.

Signs, defaults and `norm` are SciPy's: forwards is exp(-2 pi i j k / n), and with the default norm
"backward" the way back is divided by the number of points. float32 and complex64 are computed in
single precision, float64 and complex128 in double. Operands may be views of any strides; axes that
are not transformed are a batch.
"""

from accel_lab.libraries.fft.callbacks import *  # noqa: F403 - fft.Callbacks
from accel_lab.libraries.fft.convolution import *  # noqa: F403 - fft.convolve and the like
from accel_lab.libraries.fft.fourier import *  # noqa: F403 - fft.c2c, fft.rfftn and the like
from accel_lab.libraries.fft.frequencies import *  # noqa: F403 - fft.fftfreq and the like
from accel_lab.libraries.fft.layouts import *  # noqa: F403 - fft.embedded and the like
from accel_lab.libraries.fft.real_to_real import *  # noqa: F403 - fft.dct and the like
