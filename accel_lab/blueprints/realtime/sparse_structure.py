"""A sparse matrix that is built of triplets, on a device, and stored in one of three formats."""

from typing import Literal, NamedTuple

from accel_lab.actor import Actor, Message, handles
from accel_lab.blueprints.realtime.checkpoints import keep
from accel_lab.blueprints.realtime.checks import require_buffer, require_count
from accel_lab.blueprints.realtime.kernels import Kernels
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument, OutOfBounds
from accel_lab.libraries import array, primitives, sparse
from accel_lab.libraries.sparse.matrix import Format

REALS = {"float32": "float", "float64": "double"}
FORMATS = ("coo", "csr", "ell")
MOST = 1 << 30
KEEP_EVERY = 16
"""After how many messages that change the entries these are checkpointed."""


class SetEntries(Message[int], frozen=True):
    """Have these entries and no others; those of one place are added up.

    Answers with how many places have an entry. One that adds up to 0 is an entry still.
    """

    rows: AccelRef
    columns: AccelRef
    values: AccelRef


class AddEntries(Message[int], frozen=True):
    """Add entries to those that there are; answers as `SetEntries`."""

    rows: AccelRef
    columns: AccelRef
    values: AccelRef


class SetFormat(Message[None], frozen=True):
    """Store the matrix in this format, from what is stored now."""

    format: Literal["coo", "csr", "ell"]


class Multiply(Message[AccelRef], frozen=True):
    """Multiply the matrix by a vector (columns,) or a matrix (columns, n), as it is stored."""

    x: AccelRef


class GetStored(Message["Coo | Csr | Ell"], frozen=True):
    """Return the buffers of the matrix; later changes make others."""


class GetFacts(Message["SparseFacts"], frozen=True):
    """Tell what is stored; asks no device."""


class Coo(NamedTuple):
    """Entries by rows and columns: int32, int32 and the values."""

    rows: AccelRef
    columns: AccelRef
    values: AccelRef


class Csr(NamedTuple):
    """Entries by rows; those of row i are from pointers[i] to pointers[i + 1], int32."""

    pointers: AccelRef
    columns: AccelRef
    values: AccelRef


class Ell(NamedTuple):
    """As many entries for each row as the longest has, (longest, rows); no entry has column -1."""

    columns: AccelRef
    values: AccelRef


class SparseFacts(NamedTuple):
    """What a sparse structure is now.

    Attributes:
        entries: how many places have one.
        stored: how many values are stored; in ELL, rows are filled up.
    """

    shape: tuple[int, int]
    dtype: str
    format: str
    entries: int
    stored: int


class GpuSparseStructureActor(Actor):
    """A sparse matrix of float32 or float64, without entries at first, in the format COO.

    Entries of one place are added in float64, in the order in which they came, and rounded once.
    COO and CSR multiply by `sparse`, ELL by a kernel of its own, row by row in the matrix's dtype.

    Parameters:
        shape: rows and columns.
        dtype: of its values, and of what it is multiplied by.
    """

    def __init__(self, device: Device, shape: tuple[int, int], *, dtype: str = "float32") -> None:
        if dtype not in REALS:
            raise InvalidArgument(
                f"GpuSparseStructureActor: dtype must be float32 or float64, not {dtype!r}"
            )
        try:
            rows, columns = shape
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"GpuSparseStructureActor: shape must be rows and columns, not {shape!r}"
            ) from None
        self.shape = (
            require_count("GpuSparseStructureActor: rows", rows, high=MOST),
            require_count("GpuSparseStructureActor: columns", columns, high=MOST),
        )
        self.device = device
        self.dtype = dtype
        self.kernels = Kernels(device, "sparse", defines={"Value": REALS[dtype]})
        self.changes = 0
        self.entries = 0
        none = (array.zeros(device, (0,), kind) for kind in ("int32", "int32", dtype))
        self.stored: Coo | Csr | Ell = Coo(*none)

    @handles(SetEntries)
    def set_entries(self, m: SetEntries) -> int:
        """Build it anew; waits for two counts."""
        return self._replace(self._built(self._triplets("SetEntries", m)))

    @handles(AddEntries)
    def add_entries(self, m: AddEntries) -> int:
        """Build it of what there is and of what comes behind."""
        more = self._triplets("AddEntries", m)
        now = self._coo()
        before = Coo(array.cast(now.rows, "int64"), array.cast(now.columns, "int64"), now.values)
        pairs = zip(before, more, strict=True)
        return self._replace(self._built(Coo(*(array.concatenate(pair) for pair in pairs))))

    def _triplets(self, what: str, m: SetEntries | AddEntries) -> Coo:
        """Return the triplets of a message with int64 indices.

        Raises:
            InvalidArgument: they are no three vectors of one length.
            OutOfBounds: one lies outside of the matrix.
        """
        integers = "int32", "int64"
        rows = require_buffer(f"{what}: rows", m.rows, self.device, ("n",), *integers)
        n = require_count(f"{what}: the number of triplets", rows.size, low=0, high=MOST)
        columns = require_buffer(f"{what}: columns", m.columns, self.device, (n,), *integers)
        values = require_buffer(f"{what}: values", m.values, self.device, (n,), self.dtype)
        found = Coo(array.cast(rows, "int64"), array.cast(columns, "int64"), values)
        if n == 0:
            return found
        bad = int(self._keys(found)[2].get()[0])
        if bad < n:
            place = int(rows[bad].get()), int(columns[bad].get())
            raise OutOfBounds(
                f"{what}: triplet {bad} is at {place}, outside of a matrix of {self.shape}"
            )
        return found

    def _keys(self, found: Coo) -> tuple[AccelRef, AccelRef, AccelRef]:
        """Return a key for each triplet, their numbers, and the first that lies outside."""
        n = found.rows.size
        keys = array.zeros(self.device, (n,), "int64")
        order = array.zeros(self.device, (n,), "int32")
        bad = array.full(self.device, (1,), n, "int32")
        args = found.rows, found.columns, n, *self.shape, keys, order, bad
        self.kernels.launch("entry_keys", n, *args)
        return keys, order, bad

    def _built(self, found: Coo) -> Coo:
        """Sort triplets, and add up those of one place; waits for their number."""
        n = found.rows.size
        if n == 0:
            rows, columns = (array.cast(one, "int32") for one in found[:2])
            return Coo(rows, columns, found.values)
        keys, order, _ = self._keys(found)
        keys, order = primitives.sort_pairs(keys, order)
        is_first = array.zeros(self.device, (n,), "int64")
        self.kernels.launch("first_of_each", n, keys, n, is_first)
        slots = primitives.scan(is_first)
        entries = int(slots[n - 1].get())
        kinds = "int32", "int32", self.dtype
        made = Coo(*(array.zeros(self.device, (entries,), kind) for kind in kinds))
        args = keys, order, found.values, slots, n, self.shape[1], *made
        self.kernels.launch("sum_entries", n, *args)
        return made

    def _replace(self, made: Coo) -> int:
        """Store entries in the format that there is, and now and then keep them against faults."""
        entries, stored = made.values.size, self._as(made, _format(self.stored))
        self.entries, self.stored = entries, stored
        self.changes += 1
        if self.changes % KEEP_EVERY == 0:
            keep(self.device, self.stored)
        return entries

    @handles(SetFormat)
    def set_format(self, m: SetFormat) -> None:
        """Convert what is stored; to ELL waits for the longest row."""
        if m.format not in FORMATS:
            raise InvalidArgument(
                f"SetFormat: format must be one of {', '.join(FORMATS)}, not {m.format!r}"
            )
        self.stored = self._as(self.stored, m.format)

    def _as(self, stored: Coo | Csr | Ell, to: str) -> Coo | Csr | Ell:
        if _format(stored) == to:
            return stored
        if to == "coo":
            parts = self._sparse(self._as(stored, "csr")).tocoo().parts
            return Coo(parts.pointers, parts.indices, parts.values)
        if isinstance(stored, Coo) and to == "csr":
            parts = self._sparse(stored).tocsr().parts
            return Csr(parts.pointers, parts.indices, parts.values)
        if isinstance(stored, Ell):
            return self._csr_of(stored)
        csr = self._as(stored, "csr")
        assert isinstance(csr, Csr)
        return self._ell_of(csr)

    def _coo(self) -> Coo:
        coo = self._as(self.stored, "coo")
        assert isinstance(coo, Coo)
        return coo

    def _sparse(self, stored: Coo | Csr | Ell) -> sparse.SparseRef:
        """Return COO or CSR as `sparse` has it."""
        first, indices, values = stored  # type: ignore[misc]  # the three of COO and CSR
        kind: Format = "coo" if isinstance(stored, Coo) else "csr"
        return sparse.SparseRef(kind, self.shape, "int32", values, indices, first)

    def _ell_of(self, csr: Csr) -> Ell:
        """Fill up the rows.

        Raises:
            InvalidArgument: there would be too many values.
        """
        rows = self.shape[0]
        longest = int(array.diff(csr.pointers).max().get())
        if longest * rows > MOST:
            raise InvalidArgument(
                f"SetFormat: ELL would store {longest} values for each of {rows} rows, "
                f"and may have {MOST}; use csr"
            )
        columns = array.zeros(self.device, (longest, rows), "int32")
        made = Ell(columns, array.zeros(self.device, (longest, rows), self.dtype))
        self.kernels.launch("fill_ell", rows, *csr, rows, longest, *made)
        return made

    def _csr_of(self, ell: Ell) -> Csr:
        """Leave out what fills the rows up."""
        longest, rows = ell.columns.shape
        lengths = array.zeros(self.device, (rows + 1,), "int32")
        self.kernels.launch("ell_lengths", rows + 1, ell.columns, rows, longest, lengths)
        pointers = primitives.scan(lengths, exclusive=True)
        columns = array.zeros(self.device, (self.entries,), "int32")
        made = Csr(pointers, columns, array.zeros(self.device, (self.entries,), self.dtype))
        self.kernels.launch("pack_ell", rows, *ell, pointers, rows, columns, made.values)
        return made

    @handles(Multiply)
    def multiply(self, m: Multiply) -> AccelRef:
        """Multiply as it is stored; does not wait."""
        rows, columns = self.shape
        extents: tuple[int | str, ...] = (columns,)
        if len(getattr(m.x, "shape", ())) == 2:  # noqa: PLR2004 - a matrix
            extents = columns, "n"
        x = require_buffer("Multiply: x", m.x, self.device, extents, self.dtype)
        if not isinstance(self.stored, Ell):
            product: AccelRef = self._sparse(self.stored) @ x
            return product
        longest, width = self.stored.columns.shape[0], x.size // columns
        out = array.zeros(self.device, (rows, *x.shape[1:]), self.dtype)
        args = *self.stored, rows, longest, x, width, out
        self.kernels.launch("multiply_ell", rows * width, *args)
        return out

    @handles(GetStored)
    def get_stored(self, _: GetStored) -> Coo | Csr | Ell:
        """Return it."""
        return self.stored

    @handles(GetFacts)
    def get_facts(self, _: GetFacts) -> SparseFacts:
        """Tell what it is."""
        format_, stored = _format(self.stored), self.stored.values.size
        return SparseFacts(self.shape, self.dtype, format_, self.entries, stored)


def _format(stored: Coo | Csr | Ell) -> str:
    return type(stored).__name__.lower()
