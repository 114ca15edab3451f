"""Parquet and Arrow files (Feather's, too): columns of numbers, read chunk by chunk with pyarrow.

A chunk is a row group or a record batch; one at a time is in memory.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from accel_lab.compute.arena.staging import CHUNK_BYTES, Part
from accel_lab.compute.arrays import dtypes
from accel_lab.compute.files.box import Box, Place
from accel_lab.compute.files.byte_source import FileBytes
from accel_lab.compute.files.stored import Stored, size_of
from accel_lab.compute.machine.memfd_mapping import Bytes
from accel_lab.display.install import pip_install
from accel_lab.errors import FileDamaged, FileError, InvalidArgument

Array = npt.NDArray[Any]
_NAMES = {"halffloat": "float16", "float": "float32", "double": "float64"}


class Table(NamedTuple):
    """What a file has.

    Attributes:
        arrays: its columns of numbers, by their names.
        refused: the other columns, and of what type they are.
        close: gives back what reading holds.
    """

    arrays: dict[str, Stored]
    refused: dict[str, str]
    close: Callable[[], None]


class Column:
    """One column.

    Attributes:
        shape: how many rows it has.
        dtype: its dtype, by name.

    Parameters:
        name: what errors call it.
        lengths: of the chunks.
        read: returns the values of a chunk, as an array of Arrow.
    """

    is_turned = False
    in_order = True

    def __init__(
        self, name: str, dtype: str, lengths: list[int], read: Callable[[int], Any]
    ) -> None:
        self.shape: Place = (sum(lengths),)
        self.dtype = dtype
        self._name, self._lengths, self._read = name, lengths, read
        size_of(self.shape, dtype, name)

    def parts(self, box: Box) -> Iterable[Part]:
        """Give the bytes of some rows; the first chunk is read at once.

        Raises:
            FileDamaged: it cannot be read, or has other values than the file's head says.
            InvalidArgument: it has nulls.
        """
        wanted = [*self._wanted(box)]
        first = self._values(wanted[0][0]) if wanted else None
        return self._made(wanted, first)

    def _made(self, wanted: list[tuple[int, range]], values: Array | None) -> Iterator[Part]:
        offset, itemsize = 0, dtypes.itemsize(self.dtype)
        for at, (chunk, rows) in enumerate(wanted):
            if at or values is None:
                values = None  # before the next is read
                values = self._values(chunk)
            for begin in range(0, len(rows), CHUNK_BYTES // itemsize):
                some = rows[begin : begin + CHUNK_BYTES // itemsize]
                part: Array = values[some.start : some[-1] + 1 : some.step]
                yield Part(offset, part.nbytes, partial(_fill, part))
                offset += part.nbytes

    def _wanted(self, box: Box) -> Iterator[tuple[int, range]]:
        """Give the chunks that have rows of the box, and which rows of each these are."""
        (start,), (count,), (step,) = box[:3]
        begin, stop = 0, start + (count - 1) * step + 1 if count else start
        for chunk, length in enumerate(self._lengths):
            # The first of the rows start, start + step, … that is not before the chunk.
            first = max(start, begin + (start - begin) % step)
            rows = range(first - begin, min(stop - begin, length), step)
            if rows and length:
                yield chunk, rows
            begin += length

    def _values(self, chunk: int) -> Array:
        with _damage(self._name):
            column = self._read(chunk)
            column.validate(full=True)
        if len(column) != self._lengths[chunk]:
            text = f"{self._name} has {len(column):,} values in chunk {chunk}, and says that there"
            raise FileDamaged(f"{text} are {self._lengths[chunk]:,}")
        if column.null_count:
            text = f"{self._name} has {column.null_count:,} nulls in chunk {chunk}"
            raise InvalidArgument(f"{text}: fill them before the file is written")
        if column.type.id == _arrow().bool_().id:  # bits
            return np.asarray(column.to_numpy(zero_copy_only=False), np.bool_)
        values: Array = column.to_numpy(zero_copy_only=False)
        return np.asarray(values, dtypes.numpy_dtype(self.dtype))


def read_parquet(source: FileBytes) -> Table:
    """Read the foot of a Parquet file.

    Raises:
        FileDamaged: it is none.
        FileError: pyarrow is not installed.
    """
    _arrow()
    import pyarrow.parquet

    with _damage(source.name):
        stream = source.reopened()
        try:
            file = pyarrow.parquet.ParquetFile(stream, page_checksum_verification=True)
            groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
            lengths = [group.num_rows for group in groups]
            schema = file.schema_arrow
        except BaseException:
            stream.close()
            raise
    lock = threading.Lock()

    def read(name: str, chunk: int) -> Any:
        with lock:
            table = file.read_row_group(chunk, columns=[name], use_threads=False)
        return _joined(table.column(name))  # a struct "a" of a "b" comes with a column "a.b"

    def close() -> None:
        with lock:
            file.close()
            stream.close()

    try:
        return Table(*_columns(schema, lengths, read, source.name), close)
    except BaseException:
        close()
        raise


def read_arrow(source: FileBytes) -> Table:
    """Read the foot of an Arrow file (`.arrow`, and `.feather` of version 2); as `read_parquet`."""
    _arrow()
    import pyarrow.ipc

    lock = threading.Lock()
    readers: dict[int, Any] = {}

    def batch(column: int, chunk: int) -> Any:
        """Read no other column: a batch has its own place for each."""
        with lock:
            if column not in readers:
                options = pyarrow.ipc.IpcReadOptions(included_fields=[column], use_threads=False)
                readers[column] = pyarrow.ipc.open_file(stream, options=options)
            found = readers[column].get_batch(chunk)
        found.validate(full=True)
        return found

    def read(name: str, chunk: int) -> Any:
        return batch(schema.get_field_index(name), chunk).column(0)

    def close() -> None:
        with lock:
            stream.close()

    stream = source.reopened()
    try:
        with _damage(source.name):
            file = pyarrow.ipc.open_file(stream)
            schema = file.schema
            # How many rows a batch has stands with the batch alone.
            every = range(file.num_record_batches) if len(schema) else ()
            lengths = [batch(0, chunk).num_rows for chunk in every]
        return Table(*_columns(schema, lengths, read, source.name), close)
    except BaseException:
        close()
        raise


def table_of(columns: Mapping[str, Array], schema: Any) -> Any:
    """Return some rows of all columns as a table of Arrow."""
    pyarrow = _arrow()
    return pyarrow.table([pyarrow.array(values) for values in columns.values()], schema=schema)


@contextmanager
def writer(file: BinaryIO, schema: Any, suffix: str) -> Iterator[Callable[[Any], None]]:
    """Give what writes tables one after the other, to a Parquet or an Arrow file."""
    if suffix == ".parquet":
        import pyarrow.parquet

        with pyarrow.parquet.ParquetWriter(file, schema, write_page_checksum=True) as made:
            yield made.write_table
    else:
        import pyarrow.ipc

        with pyarrow.ipc.new_file(file, schema) as made:
            yield made.write_table


def schema_of(kinds: Mapping[str, str], name: str) -> Any:
    """Return Arrow's schema for columns of these dtypes.

    Raises:
        InvalidArgument: Arrow has no such dtype.
        FileError: pyarrow is not installed.
    """
    pyarrow = _arrow()
    fields = []
    for column, dtype in kinds.items():
        native = dtypes.numpy_dtype(dtype)
        if native.kind not in "biuf" or native.isbuiltin != 1:
            text = f"{name}: {column!r} is {dtype}, which is no column of Arrow's: cast it first"
            raise InvalidArgument(text)
        fields.append(pyarrow.field(column, pyarrow.from_numpy_dtype(native), nullable=False))
    return pyarrow.schema(fields)


def _columns(
    schema: Any, lengths: list[int], read: Callable[[str, int], Any], name: str
) -> tuple[dict[str, Stored], dict[str, str]]:
    arrays: dict[str, Stored] = {}
    refused: dict[str, str] = {}
    if any(length < 0 for length in lengths):
        raise FileDamaged(f"{name} speaks of chunks of {min(lengths)} rows")
    for field in schema:
        if field.name in arrays or field.name in refused:
            raise FileDamaged(f"{name} has two columns {field.name!r}")
        kind = _NAMES.get(str(field.type), str(field.type))
        if kind in dtypes.NAMES:
            column = f"{name}: {field.name!r}"
            arrays[field.name] = Column(column, kind, lengths, partial(read, field.name))
        else:
            refused[field.name] = f"it is a column of {field.type}"
    return arrays, refused


def _joined(column: Any) -> Any:
    """Return one array of what Arrow has in pieces."""
    column = column.combine_chunks()
    if hasattr(column, "chunks"):
        column = (
            _arrow().concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)
        )
    return column


def _fill(part: Array, view: Bytes) -> None:
    np.copyto(np.ndarray(part.shape, part.dtype, buffer=view), part)


def _arrow() -> Any:
    try:
        import pyarrow  # noqa: ICN001 - its name in the other functions
    except ImportError as error:
        text = f"Parquet and Arrow files need pyarrow: {pip_install('files')}"
        raise FileError(text) from error
    return pyarrow


@contextmanager
def _damage(name: str) -> Iterator[None]:
    try:
        yield
    except FileError:
        raise
    except (_arrow().ArrowException, OSError, ValueError, MemoryError, OverflowError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise FileDamaged(f"{name} cannot be read: {first}") from error
    except (TypeError, KeyError, IndexError, AttributeError, UnicodeDecodeError) as error:
        raise FileDamaged(f"{name} has a head that makes no sense: {error}") from error
