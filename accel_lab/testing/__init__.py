"""For tests of your own patterns and actors: a bench with a fake clock, scripted faults, fixtures.

Runs in the notebook's process.
"""

from accel_lab.actor.clock import FakeClock as FakeClock
from accel_lab.blueprints.patterns.base.record import Statistics as Statistics
from accel_lab.testing.bench import Bench as Bench
from accel_lab.testing.faults import Faults as Faults
