"""Kernels on disk: the cache knows every file and variable that an entry was made of."""

import os
import time
from pathlib import Path

import pytest

from accel_lab.backends.host.jit import HostJit
from accel_lab.backends.host.kernel import Built
from accel_lab.errors import CompileError
from accel_lab.libraries.jit.messages import Compile
from tests.conftest import require

KERNEL = 'extern "C" __global__ void k(double* x) { x[0] = V; }'


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    require("compiler")
    folder = tmp_path / "cache"
    monkeypatch.setenv("ACCEL_LAB_CACHE", str(folder))
    return folder


def write(header: Path, text: str) -> None:
    """Write a header that is older than what is going to be compiled of it."""
    header.parent.mkdir(exist_ok=True)
    header.write_text(text)
    changed_ns = header.stat().st_ctime_ns
    while time.time_ns() <= changed_ns:
        pass


def build(source: str) -> Built:
    """Compile as a context does that begins now."""
    return HostJit().build(Compile(source, "k"))


def found(source: str, before: Built) -> bool:
    """Whether what was built before is found on disk."""
    built = build(source)
    return built.cached and built.library == before.library and built.folder == before.folder


def test_a_file_that_is_included_by_its_path_is_read_again(tmp_path: Path) -> None:
    inner, outer = tmp_path / "a folder" / "inner.h", tmp_path / "outer.h"
    write(inner, "#define V 1\n")
    write(outer, f'#include "{inner}"\n')
    source = f'#include "{outer}"\n{KERNEL}'
    first = build(source)
    assert not first.cached
    assert build(source).cached
    inode = inner.stat()
    write(inner, "#define V 2\n")
    os.utime(inner, ns=(inode.st_atime_ns, inode.st_mtime_ns))  # as `cp -p` and tar leave it
    second = build(source)
    assert not second.cached
    assert second.library != first.library
    assert second.folder != first.folder  # what is loaded keeps its path
    assert found(source, second)
    write(inner, "#define V 1\n")
    assert found(source, first)
    write(outer, "#define V 3\n")  # the other file is not included any more
    third = build(source)
    assert not third.cached
    write(inner, "#define V 4\n")
    assert found(source, third)
    outer.unlink()
    with pytest.raises(Exception, match=r"outer\.h"):
        build(source)


@pytest.mark.parametrize("variable", ["CPATH", "CPLUS_INCLUDE_PATH"])
def test_a_folder_that_a_variable_names_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    write(tmp_path / "one" / "v.h", "#define V 1\n")
    write(tmp_path / "two" / "v.h", "#define V 2\n")
    source = f"#include <v.h>\n{KERNEL}"
    built = {}
    for name in ("one", "two"):
        monkeypatch.setenv(variable, str(tmp_path / name))
        built[name] = build(source)
        assert not built[name].cached
        assert build(source).cached
    assert built["one"].library != built["two"].library
    write(tmp_path / "two" / "v.h", "#define V 3\n")
    assert not build(source).cached
    monkeypatch.setenv(variable, str(tmp_path / "one"))
    assert found(source, built["one"])


def test_another_compiler_of_the_same_name_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "mycc"
    source = f"#define V 1\n{KERNEL}"
    for options in ("", "-DUNUSED"):
        write(script, f'#!/bin/sh\nexec c++ {options} "$@"\n')
        script.chmod(0o700)
        monkeypatch.setenv("CXX", str(script))
        assert not build(source).cached
        assert build(source).cached


def test_what_changes_while_it_is_compiled_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = tmp_path / "v.h"
    script = tmp_path / "mycc"
    write(header, "#define V 1\n")
    write(script, f'#!/bin/sh\nc++ "$@" && echo "#define V 2" > {header}\n')
    script.chmod(0o700)
    monkeypatch.setenv("CXX", str(script))
    built = build(f'#include "{header}"\n{KERNEL}')
    assert (built.folder, built.cached) == (None, False)


def test_a_folder_to_which_others_can_write_is_not_used(cache: Path) -> None:
    source = f"#define V 1\n{KERNEL}"
    assert build(source).folder is not None
    cache.chmod(0o777)
    for _ in range(2):
        built = build(source)
        assert (built.folder, built.cached) == (None, False)


def test_of_several_kernels_in_a_file_only_the_one_asked_for_is_compiled() -> None:
    other = 'extern "C" __global__ void other(int n) {{ printf("wide open %d", {0}); }}\n'
    for source in (other.format("n") + KERNEL, KERNEL + "\n" + other.format("n")):
        assert b"wide open" not in build(f"#define V 1\n{source}").library
    with pytest.raises(CompileError, match="unheard_of"):
        build(f"#define V 1\n{other.format('unheard_of')}{KERNEL}")
