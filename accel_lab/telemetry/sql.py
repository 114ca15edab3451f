"""SQL over what happened to a system, or to one that was recorded: DuckDB over plain tables."""

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from accel_lab.errors import InvalidArgument
from accel_lab.telemetry.installed import require
from accel_lab.telemetry.tables import COLUMNS, Known, Row, of_recording, rows_of
from accel_lab.views.past.recording import Recording
from accel_lab.views.scene.observer import Lab, Observer, observer_of
from accel_lab.views.widget.publisher import PUBLISHER

if TYPE_CHECKING:
    import pandas as pd


class _Watching:
    """Has a system looked at for these tables until it ends; a look keeps work traced for 2 s."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        observer.want(self, ("memory", "work", "health"))

    @property
    def ended(self) -> bool:
        return self._observer.ended

    def publish(self, at: float) -> bool:
        """Look; the publisher's thread only."""
        del at
        with self._observer.lock:
            self._observer.look()
        return True


_watched: "weakref.WeakKeyDictionary[Lab, _Watching]" = weakref.WeakKeyDictionary()
_TYPES = {"bigint": "Int64", "double": "Float64", "varchar": "string", "boolean": "boolean"}


def sql(lab: Lab | Recording, query: str) -> "pd.DataFrame":
    """Ask in SQL what happened, and return a pandas DataFrame.

    The tables are `events`, `launches`, `kernels`, `faults`, `buffers` and `metrics`; `describe
    launches` lists the columns of one. The query reaches nothing else: no file, no network, no
    variable. `kernels` has rows of a system with `trace="cupti"` alone, for which it is waited.

    Of a system that runs, work is traced from the first call on, or from when a view, a recording
    or an export began. Blocks for the devices, up to a second.

    Parameters:
        lab: the system, or a recording of one.
        query: in DuckDB's SQL.

    Raises:
        InvalidArgument: it is no query; the text has what DuckDB says.
        TelemetryUnavailable: DuckDB or pandas is not installed.
    """
    if not isinstance(query, str):
        raise InvalidArgument(f"query is of type {type(query).__name__}; expected SQL as text")
    require("sql", "duckdb", "pandas")
    import duckdb

    known = of_recording(lab) if isinstance(lab, Recording) else _of_system(lab)
    connection = duckdb.connect(":memory:", config={"python_enable_replacements": "false"})
    try:
        for name, rows in rows_of(known).items():
            _fill(connection, name, rows)
        connection.execute("set enable_external_access=false; set lock_configuration=true")
        answer = connection.sql(query)
        if answer is None:
            raise InvalidArgument("sql: the query answers with no rows; expected a select")
        return answer.df()
    except duckdb.Error as error:
        raise InvalidArgument(f"sql: {error}") from error
    finally:
        connection.close()


def _of_system(lab: Lab) -> Known:
    """Look at a system now, and keep looking."""
    observer = observer_of(lab)
    if lab not in _watched:
        watching = _watched[lab] = _Watching(observer)
        PUBLISHER.add(watching)
    observer.see()
    done = lab.profile().done if "cupti" in getattr(lab, "trace", ()) else ()  # type: ignore[attr-defined]
    with observer.lock:
        return Known(observer.look().copy(), lab.events.history(), done)


def _fill(connection: Any, name: str, rows: Sequence[Row]) -> None:
    """Make a table of the rows."""
    import pandas as pd

    columns = COLUMNS[name]
    declared = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    connection.execute(f"create table {name} ({declared})")
    if rows:
        by_column = zip(*rows, strict=True)
        frame = pd.DataFrame(
            {
                column: pd.array(list(values), dtype=_TYPES[kind])
                for (column, kind), values in zip(columns.items(), by_column, strict=True)
            }
        )
        connection.register("incoming", frame)
        connection.execute(f"insert into {name} select * from incoming")  # noqa: S608 - our names
        connection.unregister("incoming")
