"""Whether this user has written something: a seal that only who has the user's key can make.

The key is a file of this user alone, outside of every session. A folder that was changed by
somebody else, or comes from another machine, has no seal that fits; then its code needs leave.
"""

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from accel_lab.compute.machine.private_folder import create_private, is_private, read_private

KEY_BYTES = 32
SEAL_BYTES = 32
NO_SEAL = bytes(SEAL_BYTES)


def key_path() -> Path:
    """Return where the user's key is: in `accel_lab` of the XDG folder for data.

    Raises:
        RuntimeError: the user has no home.
    """
    given = os.environ.get("XDG_DATA_HOME")
    folder = Path(given) if given else Path.home() / ".local" / "share"
    return folder / "accel_lab" / "session.key"


def seal_of(data: bytes) -> bytes:
    """Return the user's seal of these bytes; `NO_SEAL` where there can be no key."""
    key = _key(make=True)
    return NO_SEAL if key is None else hmac.digest(key, data, hashlib.sha256)


def is_sealed(data: bytes, seal: bytes) -> bool:
    """Whether this user has sealed these bytes."""
    key = _key(make=False)
    return key is not None and hmac.compare_digest(hmac.digest(key, data, hashlib.sha256), seal)


def _key(*, make: bool) -> bytes | None:
    """Return the user's key, None where there is none that nobody else can have."""
    try:
        path = key_path()
        if make and not path.exists():
            _make(path)
        found = read_private(path) if is_private(path.parent) else b""
    except (OSError, RuntimeError):
        return None
    return found if len(found) == KEY_BYTES else None


def _make(path: Path) -> None:
    """Make a key, whole at once; that of another process that does the same may be first."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(create_private(beside), "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        os.link(beside, path)
    except FileExistsError:
        return
    finally:
        beside.unlink(missing_ok=True)
