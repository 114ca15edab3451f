"""What is told of a span and a log record, by OpenTelemetry's rules for names.

`service.*`, `process.*` and `exception.*` are OpenTelemetry's own; what has none there begins with
`accel_lab`. The how-to page lists them all.
"""

SYSTEM = "accel_lab.system"
VERSION = "service.version"
DEVICE = "accel_lab.device"
GENERATION = "accel_lab.generation"
PID = "process.pid"
CELL = "accel_lab.cell.number"
LINE = "accel_lab.cell.line"
ENDED = "accel_lab.cell.ended"
SEQ = "accel_lab.message.number"
KIND = "accel_lab.message.kind"
STREAM = "accel_lab.stream"
QUEUED_S = "accel_lab.message.queued"
LOST = "accel_lab.message.lost"
COUNT = "accel_lab.message.count"
GROUP = "accel_lab.group.number"
RANK = "accel_lab.group.rank"
SIZE = "accel_lab.group.size"
LINK = "accel_lab.link"
"""Of a link: `group` to other parts of one message, `rerun` to what a lost context had begun."""
SOURCE = "accel_lab.source"
STATE = "accel_lab.circuit.state"
DURATION = "accel_lab.message.duration"
"""A histogram of seconds, by device, stream and message."""
