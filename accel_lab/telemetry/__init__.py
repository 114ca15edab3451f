"""What others see of a system from outside: traces, tables, a report, a watch for NaN.

All of it is read from the facts that the views draw, or from a recording of them. Nothing here runs
until it is asked for, and the packages of the `observability` extra are imported then.

Runs in the notebook's process.
"""

from accel_lab import system
from accel_lab.telemetry.export import Export as Export
from accel_lab.telemetry.export import otlp as otlp
from accel_lab.telemetry.finite import FiniteWatch as FiniteWatch
from accel_lab.telemetry.report import report as report
from accel_lab.telemetry.sql import sql as sql
from accel_lab.telemetry.values import ValuesWatch as ValuesWatch
from accel_lab.telemetry.values import observe

system.from_above["sql"] = sql
system.from_above["observe"] = observe
system.from_above["watch_values"] = lambda lab, messages, every, bins: ValuesWatch(
    lab.devices, messages, every=every, bins=bins
)
system.from_above["watch_finite"] = lambda lab: FiniteWatch(lab.devices)
