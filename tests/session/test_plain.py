"""What names stand for, to plain data and back: the same values, shared as they were."""

import math
import os
import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab.errors import SessionDamaged
from accel_lab.session.decoder import Decoder, NeedsLeave
from accel_lab.session.notebook import Definitions
from accel_lab.session.plain.encoder import Encoder, NotKept
from accel_lab.session.plain.secret import Secrets
from accel_lab.session.session import Keeping
from accel_lab.session.store.commit import Commit
from accel_lab.session.store.folder import Folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("plain") / "run.lab")


class Trip:
    """Encodes names, and decodes them from the bytes of a commit."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.system = object()

    def __call__(self, *, may_run: bool = False, **names: Any) -> dict[str, Any]:
        decoder = self.decoder(self.commit(**names), may_run=may_run)
        return {name: decoder.value(name) for name in names}

    def commit(self, **names: Any) -> Commit:
        secrets = Secrets()
        kept = Keeping(self.folder, Definitions(self.folder, secrets), [])
        kept.nodes = {}
        encoder = Encoder(kept, secrets, self.system)
        nodes = {name: encoder.encode(name, value) for name, value in names.items()}
        made = Commit(1, 1, "", 0.0, nodes, encoder.objects, None, {}, {}, "s")
        made = msgspec.msgpack.decode(msgspec.msgpack.encode(made), type=Commit)
        for key in made.contents:
            self.folder.require(key)
        return made

    def decoder(self, commit: Commit, *, may_run: bool = False) -> Decoder:
        none: Any = None
        return Decoder(commit, self.folder, none, none, self.system, may_run=may_run)


@pytest.fixture
def trip(folder: Folder) -> Trip:
    return Trip(folder)


def same(one: Any, other: Any) -> bool:
    """Whether two values are of one type and equal, NaN with NaN and -0.0 apart from 0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or np.float64(one).tobytes() == np.float64(other).tobytes()
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same([*one.items()], [*other.items()])
    return bool(one == other)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.complex_numbers(allow_nan=False)
    | st.text(st.characters(), max_size=300)
    | st.binary(max_size=300)
    | st.builds(range, st.integers(-99, 99), st.integers(-99, 99)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=4)
        | st.frozensets(st.integers() | st.text(max_size=3), max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=40, deadline=None)
@given(value=PLAIN)
def test_plain_data_comes_back_as_it_was(folder: Folder, value: Any) -> None:
    assert same(Trip(folder)(x=value)["x"], value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4),
        np.asfortranarray(np.arange(600, dtype="int16").reshape(20, 30)),
        np.arange(100)[::-3],
        np.zeros((0, 3), "complex64"),
        np.array(3.5, "float16"),
        np.array(["a", "bcd"]),
        np.array([b"a", b"bcd"]),
        np.array(["2026-01-02", "NaT"], "datetime64[D]"),
        np.array([1, None, "x"], object),
        np.arange(5).astype(ml_dtypes.bfloat16),
        np.arange(5, dtype=">i4"),
        np.array([True, False]),
    ],
    ids=lambda array: str(array.dtype),
)
def test_arrays_come_back_as_they_were(trip: Trip, array: Any) -> None:
    found = trip(x=array)["x"]
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    np.testing.assert_array_equal(found, array)
    assert found.flags.writeable
    assert found.flags.f_contiguous == array.flags.f_contiguous or not array.flags.contiguous


def test_numbers_dtypes_and_generators_of_numpy_come_back(trip: Trip) -> None:
    own = np.random.default_rng(3)
    own.normal(size=5)
    names: dict[str, Any] = {
        "x": np.float32(2.5),
        "d": np.dtype("int8"),
        "own": own,
        "b": np.bool_(1),
    }
    found = trip(**names)
    assert type(found["x"]) is np.float32
    assert found["x"] == 2.5
    assert found["d"] is np.dtype("int8")
    assert found["b"] is np.True_
    np.testing.assert_array_equal(found["own"].normal(size=9), own.normal(size=9))


def test_what_was_shared_is_shared_again(trip: Trip) -> None:
    rows: list[Any] = [1, 2]
    loop: list[Any] = [rows]
    loop.append(loop)
    array = np.ones(3)
    found = trip(a=rows, b=rows, c={"rows": rows, "x": array}, loop=loop, x=array)
    assert found["a"] is found["b"] is found["c"]["rows"] is found["loop"][0]
    assert found["loop"][1] is found["loop"]
    assert found["c"]["x"] is found["x"]


def test_a_large_container_is_written_once(trip: Trip) -> None:
    rows = [[n, n + 0.5] for n in range(5000)]
    commit = trip.commit(rows=rows, ones=[1] * 2000)
    assert [node for node in commit.objects if node[0] == "large"] == commit.objects[::5001]
    decoder = trip.decoder(commit)
    assert decoder.value("rows") == rows
    assert decoder.value("ones") == [1] * 2000


def test_equal_but_not_the_same_stays_apart(trip: Trip) -> None:
    found = trip(a=[1], b=[1])
    assert found["a"] is not found["b"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (object(), "a object is no plain data"),
        (lambda: 1, "no cell has defined it"),
        ((x for x in "ab"), "a generator is no plain data"),
        (threading.Lock(), "no plain data"),
        ([[1, object()]], "a object is no plain data"),
        (np.zeros(2, [("a", "i4")]), "has no short name"),
    ],
    ids=["object", "lambda", "generator", "lock", "inside", "structured"],
)
def test_what_is_no_plain_data_is_refused_with_the_reason(trip: Trip, value: Any, why: str) -> None:
    with pytest.raises(NotKept, match=why):
        trip.commit(x=value)


def test_a_subclass_is_no_plain_data(trip: Trip) -> None:
    class Odd(dict):  # type: ignore[type-arg]
        pass

    with pytest.raises(NotKept, match="Odd"):
        trip.commit(x=Odd())


def test_what_is_nested_too_deeply_is_refused(trip: Trip) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(NotKept, match="nested too deeply"):
        trip.commit(x=deep)


def test_what_is_refused_leaves_nothing_of_itself(trip: Trip) -> None:
    shared = [1, 2, 3]
    secrets = Secrets()
    kept = Keeping(trip.folder, Definitions(trip.folder, secrets), [])
    kept.nodes = {}
    encoder = Encoder(kept, secrets, trip.system)
    with pytest.raises(NotKept):
        encoder.encode("bad", [shared, object()])
    assert encoder.objects == []
    assert encoder.encode("good", shared) == ["o", 0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("api_key", "anything"),
        ("x", "sk-abcdefghijklmnopqrstuv"),
        ("x", "https://me:pass@host/db"),
        ("x", {"password": "anything"}),
        ("x", ["y", b"hf_abcdefghijklmnopqrstuv"]),
        ("x", np.array(["hf_abcdefghijklmnopqrstuv"])),
        ("x", "so it is in-the-environment-7 there"),
        ("next_token", "anything"),
        ("tokens", "a3f09bc17de24f6688aahijklmnopqrstuv"),
        ("x", {"access_tokens": ["a", "a3f09bc17de24f6688aahijklmnopqrstuv"]}),
    ],
)
def test_secrets_are_refused(
    trip: Trip, name: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "in-the-environment-7")
    with pytest.raises(NotKept, match="secret"):
        trip.commit(**{name: value})
    for path in trip.folder.path.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert b"hijklmnopqrstuv" not in data
            assert b"environment-7" not in data


def test_what_only_looks_a_little_like_a_secret_is_kept(trip: Trip) -> None:
    names: dict[str, Any] = {"tokens": "a b c", "x": "the token of my appreciation", "keys": ["a"]}
    names |= {"tokenizer": "sentence-transformers/all-MiniLM-L6-v2", "n_tokens": 512, "token": 7}
    names |= {"token_ids": [1, 2, 3], "stop_tokens": ["<|endoftext|>", "</s>"]}
    assert trip(**names) == names
    assert trip(token_ids=np.arange(900))["token_ids"].tolist() == [*range(900)]


@pytest.mark.parametrize(
    "source",
    [
        "tokenizer = 'gpt2'\nn_tokens = 512",
        'tokens = "a b c".split()',
        "def f(tokenizer='bert-base-uncased', max_tokens=5): return {'tokens': '<s>'}",
        "token_ids = [1, 2]; detokenized = 'x'",
    ],
)
def test_a_text_about_tokens_is_kept_as_it_is(source: str) -> None:
    assert Secrets().scrubbed(source) == source


@pytest.mark.parametrize(
    "source",
    [
        "token = 'abc'",
        'HF_TOKEN="abc"',
        "connect(authtoken='abc', n=1)",
        "{'accessToken': 'abc'}",
        "api_tokens = ['a3f09bc17de24f6688aaabc']",
    ],
)
def test_a_text_with_a_token_loses_it_alone(source: str) -> None:
    found = Secrets().scrubbed(source)
    assert "abc" not in found
    assert found.partition("=")[0] == source.partition("=")[0].replace("'abc'", "'[left-out]'")
    compile(found, "", "exec")


def test_modules_and_their_functions_come_back_with_leave(trip: Trip) -> None:
    names = {"m": math, "f": math.sqrt, "join": os.path.join, "kind": np.float32, "u": np.sin}
    commit = trip.commit(**names)
    decoder = trip.decoder(commit, may_run=True)
    assert all(decoder.value(name) is value for name, value in names.items())
    strict = trip.decoder(commit)
    for name in names:
        with pytest.raises(NeedsLeave):
            strict.value(name)
    assert trip(np=np)["np"] is np


def test_a_commit_that_holds_something_else_is_damaged(trip: Trip) -> None:
    commit = trip.commit(x=[1])
    bad = (["o", 99], ["o", "x"], ["text", 5], ["o", 0])
    for node in bad:
        changed = Commit(
            1, 1, "", 0.0, {"x": node}, [["no such word", 1]], None, {}, {}, commit.session
        )
        with pytest.raises(SessionDamaged, match=str(Path("commits"))):
            trip.decoder(changed).value("x")
