"""Import simulations that one watches.

from accel_lab.prelude.realtime import *
"""

from accel_lab.blueprints.realtime import (
    ClothSimulationActor,
    FluidSimulationActor,
    GpuHashMapActor,
    ImageFilterPipeline,
    Measure,
    ParticleSystemActor,
    Picture,
    Simulation,
    SpatialIndexActor,
    Step,
)

__all__ = [
    "ClothSimulationActor",
    "FluidSimulationActor",
    "GpuHashMapActor",
    "ImageFilterPipeline",
    "Measure",
    "ParticleSystemActor",
    "Picture",
    "Simulation",
    "SpatialIndexActor",
    "Step",
]
