"""A cache on disk: entries appear at once, damage is found, and old entries make room."""

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab.compute.machine.disk_cache import INDEX, DiskCache, cache_folder, key_of
from tests.project import ROOT

FILES = {"kernel.so": b"\x7fELF" * 100, "log.txt": b""}

# One of several processes that put and get the same few keys; it checks whatever it gets.
HAMMER = """
import sys
from pathlib import Path
from accel_lab.compute.machine.disk_cache import DiskCache
cache = DiskCache(Path(sys.argv[1]), limit_bytes=40_000)
for turn in range(150):
    number = (turn * 7 + int(sys.argv[2])) % 5
    content = {"a": bytes([number]) * 5000, "b": b"%d" % number}
    found = cache.get(str(number))
    assert found in (None, content), (number, found)
    if found is None or turn % 10 == 0:
        cache.put(str(number), content)
print(cache.damaged)
"""


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache")


def age(cache: DiskCache, key: str, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(cache.path(key), (then, then))


def names(cache: DiskCache) -> set[str]:
    return {path.name for path in cache.folder.iterdir()}


def test_what_was_put_is_got_and_counted(cache: DiskCache) -> None:
    assert cache.get("k") is None
    folder = cache.put("k", FILES)
    assert cache.get("k") == FILES
    assert (folder / "kernel.so").read_bytes() == FILES["kernel.so"]
    assert (cache.hits, cache.misses, cache.damaged) == (1, 1, 0)
    assert DiskCache(cache.folder).get("k") == FILES


def test_the_first_entry_of_a_key_stays(cache: DiskCache) -> None:
    cache.put("k", FILES)
    cache.put("k", {"other": b"1"})
    assert cache.get("k") == FILES
    assert names(cache) == {"k"}


@settings(max_examples=60)
@given(data=st.data())
def test_every_kind_of_damage_is_found(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Flip a byte, cut a file, or lose one: the entry is gone, and a new one can be made."""
    cache = DiskCache(tmp_path_factory.mktemp("cache"))
    folder = cache.put("k", FILES)
    name = data.draw(st.sampled_from(["kernel.so", INDEX]))
    content = bytearray((folder / name).read_bytes())
    kind = data.draw(st.sampled_from(["flip", "cut", "lose"]))
    at = data.draw(st.integers(0, len(content) - 1))
    if kind == "flip":
        content[at] ^= data.draw(st.integers(1, 255))
        (folder / name).write_bytes(content)
    elif kind == "cut":
        (folder / name).write_bytes(content[:at])
    else:
        (folder / name).unlink()
    assert cache.get("k") is None
    assert cache.damaged == 1
    assert names(cache) == set()
    cache.put("k", FILES)
    assert cache.get("k") == FILES


def test_the_least_recently_used_make_room(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, limit_bytes=3500)
    for number, key in enumerate("abc"):
        cache.put(key, {"x": bytes(1000)})
        age(cache, key, 100 - number)
    assert cache.get("a") is not None  # used again, so that b is the oldest
    cache.put("d", {"x": bytes(1000)})
    assert names(cache) == {"a", "c", "d"}
    assert cache.get("b") is None


def test_an_entry_larger_than_the_limit_is_kept_until_the_next(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, limit_bytes=500)
    cache.put("a", {"x": bytes(1000)})
    assert cache.get("a") is not None
    age(cache, "a", 10)
    cache.put("b", {"x": bytes(10)})
    assert names(cache) == {"b"}


def test_what_a_killed_process_left_behind_goes_after_an_hour(cache: DiskCache) -> None:
    cache.put("a", FILES)
    for name, seconds in ((".unfinished-old", 7200), (".unfinished-new", 60)):
        (cache.folder / name).mkdir()
        age(cache, name, seconds)
    cache.put("b", FILES)
    assert names(cache) == {"a", "b", ".unfinished-new"}


def test_a_workplace_is_empty_and_goes(cache: DiskCache) -> None:
    with cache.workplace() as folder:
        assert list(folder.iterdir()) == []
        (folder / "x").write_text("x")
    assert not folder.exists()


def test_a_folder_that_cannot_be_gives_an_error_at_put_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = DiskCache(tmp_path / "file" / "cache")
    assert cache.get("k") is None
    with pytest.raises(OSError, match="file"):
        cache.put("k", FILES)
    with cache.workplace() as folder:
        assert folder.is_dir()


def test_many_processes_share_a_cache(tmp_path: Path) -> None:
    """Nobody ever reads half an entry, or one of another key, while entries come and go."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", HAMMER, str(tmp_path / "cache"), str(number)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    outputs = [process.communicate(timeout=100)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert outputs


def test_keys_differ_with_every_part() -> None:
    keys = {key_of("a", "b"), key_of("ab", ""), key_of("a", "b", None), key_of("b", "a"), key_of()}
    assert len(keys) == 5
    assert key_of("a", ("b",)) == key_of("a", ("b",))


def test_the_user_says_where_caches_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ACCEL_LAB_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("ACCEL_LAB_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "accel_lab"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "accel_lab"


def test_an_entry_is_replaced_when_that_is_asked_for(cache: DiskCache) -> None:
    cache.put("k", FILES)
    cache.put("k", {"other": b"1"}, anew=True)
    assert cache.get("k") == {"other": b"1"}


@pytest.mark.parametrize("mode", [0o777, 0o702])
@pytest.mark.parametrize("which", ["entry", "folder", "above"])
def test_what_others_could_have_written_is_neither_read_nor_written(
    tmp_path: Path, mode: int, which: str
) -> None:
    cache = DiskCache(tmp_path / "above" / "cache")
    entry = cache.put("k", FILES)
    assert [stat.S_IMODE(one.stat().st_mode) for one in (entry, cache.folder)] == [0o700] * 2
    open_to_all = {"entry": entry, "folder": cache.folder, "above": cache.folder.parent}[which]
    open_to_all.chmod(mode)
    assert cache.get("k") is None
    assert entry.exists()
    if which != "entry":
        with pytest.raises(PermissionError, match="others can write to"):
            cache.put("another", FILES)
        with cache.workplace() as folder:
            assert folder.parent != cache.folder
    open_to_all.chmod(0o700)
    assert cache.get("k") == FILES


def test_a_link_in_the_place_of_an_entry_is_not_followed(cache: DiskCache, tmp_path: Path) -> None:
    entry = cache.put("k", FILES)
    entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(tmp_path / "elsewhere")
    assert cache.get("k") is None


@pytest.mark.parametrize("mode", [0o666, 0o602])
@pytest.mark.parametrize("name", ["kernel.so", "index.json"])
def test_a_file_that_others_can_write_to_is_not_trusted(
    cache: DiskCache, name: str, mode: int
) -> None:
    """As in an entry that was copied, or whose folder was open to all for a while."""
    entry = cache.put("k", FILES)
    (entry / name).chmod(mode)
    assert cache.get("k") is None
    (entry / name).chmod(0o600)
    assert cache.get("k") == FILES


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_not_trusted(cache: DiskCache) -> None:
    entry = cache.put("k", FILES)
    os.chown(entry / "log.txt", 65534, -1)
    assert cache.get("k") is None
    os.chown(entry / "log.txt", 0, -1)
    assert cache.get("k") == FILES


def test_a_link_in_the_place_of_a_file_is_not_followed(cache: DiskCache, tmp_path: Path) -> None:
    entry = cache.put("k", FILES)
    (entry / "log.txt").rename(tmp_path / "elsewhere")
    (entry / "log.txt").symlink_to(tmp_path / "elsewhere")
    assert cache.get("k") is None


def test_what_is_put_is_this_users_alone(cache: DiskCache) -> None:
    before = os.umask(0)
    try:
        entry = cache.put("k", FILES)
    finally:
        os.umask(before)
    assert {stat.S_IMODE(file.stat().st_mode) for file in entry.iterdir()} == {0o600}
