"""A hash map on a device: many keys at once, without a race, and it grows by itself."""

from typing import NamedTuple

from accel_lab.actor import Actor, Message, handles
from accel_lab.blueprints.realtime.checkpoints import keep
from accel_lab.blueprints.realtime.checks import require_buffer, require_count
from accel_lab.blueprints.realtime.kernels import Kernels
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.libraries import array, primitives

VALUES = {"int32": "int", "int64": "Long", "float32": "float", "float64": "double"}
"""What `Value` is in the kernels."""
EMPTY = -(1 << 63)
FULLEST = 0.5
MOST_SLOTS = 1 << 30
KEEP_EVERY = 64
"""After how many messages that write the table is checkpointed."""


class Insert(Message[int], frozen=True):
    """Map keys to values, over what they had; of equal keys the last one counts.

    Answers with how many keys were new.
    """

    keys: AccelRef
    values: AccelRef


class Find(Message["Found"], frozen=True):
    """Look keys up."""

    keys: AccelRef


class Erase(Message[int], frozen=True):
    """Take keys out; answers with how many were there."""

    keys: AccelRef


class Items(Message["Entries"], frozen=True):
    """Return all keys and values, in no order that says anything."""


class CountKeys(Message[int], frozen=True):
    """Return how many keys there are."""


class Found(NamedTuple):
    """What was found.

    Attributes:
        values: of the keys, 0 where there is none.
        found: uint8, 1 where there is one.
    """

    values: AccelRef
    found: AccelRef


class Entries(NamedTuple):
    """Keys, and the values that belong to them."""

    keys: AccelRef
    values: AccelRef


class GpuHashMapActor(Actor):
    """Maps int64 keys to numbers, with linear probing; at most half of its slots are in use.

    The two least int64 are no keys.

    Parameters:
        dtype: of the values: "int32", "int64", "float32" or "float64".
        capacity: for how many keys there is room before it grows for the first time.
    """

    def __init__(self, device: Device, *, dtype: str = "int64", capacity: int = 512) -> None:
        if dtype not in VALUES:
            raise InvalidArgument(
                f"GpuHashMapActor: dtype must be one of {', '.join(VALUES)}, not {dtype!r}"
            )
        require_count("GpuHashMapActor: capacity", capacity, high=MOST_SLOTS // 2)
        self.device = device
        self.dtype = dtype
        self.kernels = Kernels(device, "hash_map", defines={"Value": VALUES[dtype]})
        self.writes = 0
        self.used = self.erased = 0
        self.is_counted = True
        self._new_table(capacity)

    def _new_table(self, keys: int) -> None:
        """Make an empty table with room for so many keys.

        Raises:
            InvalidArgument: no table is as large.
        """
        slots = 1 << max(4, int(keys / FULLEST - 1).bit_length())
        if slots > MOST_SLOTS:
            raise InvalidArgument(
                f"Insert: a map holds at most {int(MOST_SLOTS * FULLEST)} keys, not {keys}"
            )
        self.slots = slots
        self.table = array.full(self.device, (slots,), EMPTY, "int64")
        self.values = array.zeros(self.device, (slots,), self.dtype)
        self.tally = array.zeros(self.device, (2,), "int32")
        self.used = self.erased = 0

    @handles(Insert)
    def insert(self, m: Insert) -> int:
        """Make room, find the slots, and store; waits for the count."""
        keys = require_buffer("Insert: keys", m.keys, self.device, ("n",), "int64")
        require_buffer("Insert: values", m.values, self.device, keys.shape, self.dtype)
        n = keys.size
        if n == 0:
            return 0
        if (least := int(primitives.reduce(keys, "min").get())) <= EMPTY + 1:
            raise InvalidArgument(f"Insert: keys must be above {EMPTY + 1}; one is {least}")
        self._require_counted()
        if self.used + n > self.slots * FULLEST:
            self._grow(n)
        before = self.used
        self._put(keys, m.values, n)
        self._wrote()
        return self.used - before

    def _put(self, keys: AccelRef, values: AccelRef, n: int) -> None:
        self.is_counted = False
        slots = array.zeros(self.device, (n,), "int32")
        owners = array.zeros(self.device, (self.slots,), "int32")
        launch = self.kernels.launch
        launch("claim", n, keys, n, self.table, owners, self.slots - 1, slots, self.tally)
        launch("store", n, values, n, slots, owners, self.values)

    def _grow(self, n: int) -> None:
        """Move what is there to a table that has room for `n` more; where that fails all stays."""
        least, most = self.used - self.erased + n, int(MOST_SLOTS * FULLEST)
        before = table, values, _, slots, *_ = self._state()
        try:
            self._new_table(max(least, min(2 * least, most)))
            self._put(table, values, slots)
            self._count()
        except AccelError:
            self.table, self.values, self.tally, self.slots, self.used, self.erased = before
            self.is_counted = True
            raise

    def _state(self) -> tuple[AccelRef, AccelRef, AccelRef, int, int, int]:
        return self.table, self.values, self.tally, self.slots, self.used, self.erased

    def _count(self) -> None:
        self.used, self.erased = (int(one) for one in self.tally.get())
        self.is_counted = True

    def _require_counted(self) -> None:
        """Take the tally where a fault has kept the last message from it."""
        if not self.is_counted:
            self._count()

    def _wrote(self) -> None:
        """Take the tally, and now and then keep the table against faults."""
        self._count()
        self.writes += 1
        if self.writes % KEEP_EVERY == 0:
            keep(self.device, (self.table, self.values, self.tally))

    @handles(Find)
    def find(self, m: Find) -> Found:
        """Look them up; does not wait."""
        keys = require_buffer("Find: keys", m.keys, self.device, ("n",), "int64")
        n = keys.size
        values = array.zeros(self.device, (n,), self.dtype)
        found = array.zeros(self.device, (n,), "uint8")
        table = self.table, self.values, self.slots - 1
        self.kernels.launch("find", n, keys, n, *table, values, found)
        return Found(values, found)

    @handles(Erase)
    def erase(self, m: Erase) -> int:
        """Mark their slots; waits for the count."""
        keys = require_buffer("Erase: keys", m.keys, self.device, ("n",), "int64")
        self._require_counted()
        before = self.erased
        self.is_counted = False
        args = keys, keys.size, self.table, self.slots - 1, self.tally
        self.kernels.launch("erase", keys.size, *args)
        self._wrote()
        return self.erased - before

    @handles(Items)
    def items(self, _: Items) -> Entries:
        """Select the slots that hold a key."""
        is_there = array.zeros(self.device, (self.slots,), "uint8")
        self.kernels.launch("occupied", self.slots, self.table, self.slots, is_there)
        flags = array.cast(is_there, "bool")
        return Entries(self.table[flags], self.values[flags])

    @handles(CountKeys)
    def count(self, _: CountKeys) -> int:
        """Return it; waits for nothing, as a rule."""
        self._require_counted()
        return self.used - self.erased
