"""Random numbers of Philox."""

from functools import partial

import cupy
from cupy.random import Generator, Philox4x3210
from cupy_backends.cuda.libs import curand

from accel_lab.backends.cuda.baseline import Call


def words(count: int) -> Call:
    """Prepare a draw of 32-bit words: cuRAND's own, because CuPy gives each 64 bits."""
    stream = cupy.cuda.get_current_stream()
    generator = curand.createGenerator(curand.CURAND_RNG_PSEUDO_PHILOX4_32_10)
    curand.setPseudoRandomGeneratorSeed(generator, 0)
    curand.setStream(generator, stream.ptr)
    out = cupy.empty(count, cupy.uint32)

    def run() -> None:
        curand.generate(generator, out.data.ptr, count)

    return "curandGenerate", run, stream.synchronize


def uniform(count: int) -> Call:
    """Prepare a draw of float32."""
    draw = Generator(Philox4x3210(0)).random
    out = cupy.empty(count, cupy.float32)
    run = partial(draw, size=count, dtype=cupy.float32, out=out)
    return "Generator.random", run, cupy.cuda.get_current_stream().synchronize
