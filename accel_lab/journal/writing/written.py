"""What this process has written: a name in a store can be anybody's, these digests cannot.

Digests are keyed with a secret of the process, so that 64 bits are enough: nobody else can try.
"""

import hashlib
import secrets
from array import array

import msgspec

from accel_lab.journal.stores.group import Group

DIGEST_BYTES = 8
_encode = msgspec.msgpack.Encoder().encode


class Written:
    """The groups of one session, 8 bytes for each; noted by one thread, asked by any."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._digests = array("Q")  # by position; 0 for a group that was never written

    def note(self, group: Group) -> None:
        """This process writes a group."""
        missing = group.position + 1 - len(self._digests)
        if missing > 0:
            self._digests.extend([0] * missing)
        self._digests[group.position] = self._digest(group)

    def __contains__(self, group: Group) -> bool:
        if not 0 <= group.position < len(self._digests):
            return False
        return self._digests[group.position] == self._digest(group)

    def _digest(self, group: Group) -> int:
        facts = msgspec.structs.replace(group, number=0, data=b"", plain=False)
        made = hashlib.blake2b(_encode(facts), key=self._key, digest_size=DIGEST_BYTES)
        made.update(group.data)
        return int.from_bytes(made.digest(), "big") or 1
