"""Simulations that one watches: actors whose state lives on a device, in kernels of our own.

Runs in the notebook's process.
"""

from accel_lab.blueprints.realtime.spatial_index import Index as Index
from accel_lab.blueprints.realtime.spatial_index import Neighbours as Neighbours
from accel_lab.blueprints.realtime.spatial_index import SpatialIndexActor as SpatialIndexActor
from accel_lab.blueprints.realtime.spatial_index import Within as Within
from accel_lab.blueprints.realtime.particles import ParticleSystemActor as ParticleSystemActor
from accel_lab.blueprints.realtime.particles import SetBounce as SetBounce
from accel_lab.blueprints.realtime.particles import SetDrag as SetDrag
from accel_lab.blueprints.realtime.particles import SetFriction as SetFriction
from accel_lab.blueprints.realtime.particles import SetGravity as SetGravity
from accel_lab.blueprints.realtime.simulation import Control as Control
from accel_lab.blueprints.realtime.simulation import Describe as Describe
from accel_lab.blueprints.realtime.simulation import Description as Description
from accel_lab.blueprints.realtime.simulation import Measure as Measure
from accel_lab.blueprints.realtime.simulation import Picture as Picture
from accel_lab.blueprints.realtime.simulation import Simulation as Simulation
from accel_lab.blueprints.realtime.simulation import Step as Step
