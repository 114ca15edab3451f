"""What the user's own kernels may do to a context, and what survives it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel_lab import Device, System, array, blas, jit
from accel_lab.compute.events.lifecycle import OutputPrinted
from accel_lab.errors import (
    CompileError,
    ContextLost,
    ContextReplaced,
    DeadlineExceeded,
    InvalidArgument,
    StaleRef,
)
from tests.conftest import require
from tests.faults.conftest import settle

WAIT = 60.0
FILL = "__global__ void fill(float* x, float v) { x[threadIdx.x] = v; }"


@pytest.fixture(autouse=True)
def compiler() -> None:
    require("compiler")


def filled(device: Device, kernel: jit.Kernel, number: float) -> list[float]:
    x = array.zeros(device, (3,), "float32")
    kernel(1, 3, (x, number)).result(WAIT)
    found: list[float] = device.get(x).result(WAIT).tolist()
    return found


@pytest.mark.parametrize(
    ("body", "signal"),
    [
        ("*(volatile int*)(x + (1ll << 40)) = 1;", "SIGSEGV"),
        ("assert(x == nullptr);", "SIGABRT"),
        ("__trap();", "SIGABRT"),
        (
            "volatile char much[1 << 20]; much[0] = *x; much[threadIdx.x] = 1; __syncthreads();",
            "SIGSEGV",
        ),
    ],
)
def test_a_kernel_that_crashes_costs_its_context_only(cpu: Device, body: str, signal: str) -> None:
    good = jit.compile(cpu, FILL, "fill").result(WAIT)
    bad = jit.compile(cpu, f"__global__ void f(float* x) {{ {body} }}", "f")
    with pytest.raises(ContextLost) as caught:
        bad(1, 2, (array.zeros(cpu, (3,), "float32"),)).result(WAIT)
    assert caught.value.name == signal
    assert filled(cpu, good, 4) == [4, 4, 4]


def test_a_launch_that_is_too_late_is_told_by_the_name_of_its_kernel(cpu: Device) -> None:
    endless = "__global__ void endless(volatile float* x) { while (x[0] == 0) {} }"
    kernel = jit.compile(cpu, endless, "endless").result(WAIT)
    x = array.zeros(cpu, (1,), "float32")
    with pytest.raises(InvalidArgument, match="a number of seconds above 0"):
        kernel(1, 1, (x,), timeout_s=0)
    late = jit.launch_kernel(kernel, 1, 1, (x,), timeout_s=0.1)
    with pytest.raises(DeadlineExceeded, match=r"longer than its 0\.1 s") as caught:
        late.result(WAIT)
    assert caught.value.recent[-1] == f"endless #{cpu.last_number} on jit"
    assert "what it ran last: endless #" in str(caught.value)


def test_a_kernel_is_known_to_be_compiled_while_its_first_launch_runs(
    cpu: Device, tmp_path: Path
) -> None:
    endless = "__global__ void endless(volatile float* x) { while (x[0] == 0) {} }"
    kernel = jit.compile(cpu, f"// {tmp_path}\n{endless}", "endless")
    launched = kernel(1, 1, (array.zeros(cpu, (1,), "float32"),))
    kernel.result(WAIT)
    assert not launched.done
    cpu.replace()
    with pytest.raises(ContextReplaced):
        launched.result(WAIT)


def test_a_kernel_is_compiled_again_after_a_loss(lab: System, cpu: Device) -> None:
    kernel = jit.compile(cpu, FILL, "fill").result(WAIT)
    old = array.zeros(cpu, (3,), "float32")
    with pytest.raises(ContextLost):
        lab.inject("kill", cpu).result(WAIT)
    assert "compiled again" in repr(kernel)
    with pytest.raises(StaleRef, match="generation 1"):
        kernel(1, 3, (old, 1))
    assert filled(cpu, kernel, 5) == [5, 5, 5]
    assert kernel.inspect().result(WAIT).cached


def test_a_kernel_finds_a_buffer_that_is_made_twice_as_it_comes_back(nothing_left: None) -> None:
    """First of messages, for what was made of it, and then of its checkpoint."""
    with System("host") as lab:
        cpu = lab.devices[0]
        bump = jit.compile(cpu, "__global__ void bump(float* x) { x[threadIdx.x] += 1; }", "bump")
        x = array.zeros(cpu, (3,), "float32")
        bump(1, 3, (x,))
        made = x * 2
        cpu.checkpoint(x).result(WAIT)
        bump(1, 3, (x,))
        with pytest.raises(ContextLost):
            lab.inject("kill", cpu).result(WAIT)
        assert (made.get().tolist(), x.get().tolist()) == ([2, 2, 2], [2, 2, 2])


def test_a_kernel_whose_context_is_lost_while_it_compiles_is_compiled_again(
    nothing_left: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gate: Path
) -> None:
    compiler = tmp_path / "c++"
    build = f'for word; do [ "$word" = -o ] && until [ -e "{gate}" ]; do sleep 0.01; done; done'
    compiler.write_text(f'#!/bin/sh\n{build}\nexec {shutil.which("c++")} "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with System("host", recover="stale") as lab:
        (cpu,) = lab.devices
        cpu.run(print).result(WAIT)
        kernel = jit.compile(cpu, f"// lost {os.getpid()}\n{FILL}", "fill")
        with pytest.raises(ContextLost):
            lab.inject("kill", cpu).result(WAIT)
        gate.touch()
        with pytest.raises(ContextLost):
            kernel.result(WAIT)
        assert filled(cpu, kernel, 6) == [6, 6, 6]
        assert kernel.result(WAIT) is kernel


def test_another_system_finds_what_was_compiled(nothing_left: None, tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        with System("host", recover="stale") as lab:
            kernel = jit.compile(lab.devices[0], f"// {tmp_path}\n{FILL}", "fill")
            assert filled(lab.devices[0], kernel, 1) == [1, 1, 1]
            found.append(kernel.inspect().result(WAIT))
    assert [facts.cached for facts in found] == [False, True]
    assert found[0].binary == found[1].binary


def test_damage_on_disk_is_mended(nothing_left: None, tmp_path: Path) -> None:
    source = f"// {tmp_path}\n{FILL}"
    with System("host", recover="stale") as lab:
        binary = Path(jit.compile(lab.devices[0], source, "fill").inspect().result(WAIT).binary)
    binary.write_bytes(binary.read_bytes()[:-100] + bytes(100))
    with System("host", recover="stale") as lab:
        kernel = jit.compile(lab.devices[0], source, "fill")
        assert not kernel.inspect().result(WAIT).cached
        assert filled(lab.devices[0], kernel, 2) == [2, 2, 2]


def test_a_debugger_finds_the_source(cpu: Device, tmp_path: Path) -> None:
    facts = jit.compile(cpu, f"// {tmp_path}\n{FILL}", "fill").inspect().result(WAIT)
    source = Path(facts.source)
    assert FILL in source.read_text()
    binary = Path(facts.binary).read_bytes()
    assert str(source.parent).encode() + b"\0" in binary
    assert source.name.encode() + b"\0" in binary


def test_printf_appears_in_the_events(lab: System, cpu: Device) -> None:
    source = '__global__ void say(int n) { printf("thread %d of %d\\n", threadIdx.x, n); }'
    jit.compile(cpu, source, "say")(1, 2, (2,)).result(WAIT)

    def lines() -> list[str]:
        return "".join(e.text for e in lab.events.history(OutputPrinted)).splitlines()

    assert settle(lambda: len(lines()) == 2)
    assert lines() == ["thread 0 of 2", "thread 1 of 2"]


def test_a_missing_compiler_says_what_to_install(
    nothing_left: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CXX", str(tmp_path / "no-such-compiler"))
    with System("host", recover="stale") as lab:
        kernel = jit.compile(lab.devices[0], FILL, "fill")
        with pytest.raises(CompileError, match=r"no-such-compiler.*apt-get install g\+\+"):
            kernel.result(WAIT)


@pytest.mark.parametrize(
    ("script", "command", "match"),
    [
        (b"", "'{} -O1", "CXX holds no command: No closing quotation; correct it, or unset it"),
        (b"#!/no/such/shell\n", "{}", "c++ cannot be started: No such file.*name it in CXX"),
        (b"\x7fELF of no machine", "{}", "c++ cannot be started: Exec format error"),
        (b"#!/bin/sh\nprintf 'd\\351faut' >&2\nexit 1\n", "{}", "does not compile:\nd.faut"),
    ],
)
def test_a_compiler_that_cannot_be_started_is_told(
    nothing_left: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    script: bytes,
    command: str,
    match: str,
) -> None:
    path = tmp_path / "c++"
    path.write_bytes(script)
    path.chmod(0o755)
    monkeypatch.setenv("CXX", command.format(path))
    with System("host", recover="stale") as lab:
        kernel = jit.compile(lab.devices[0], FILL, "fill")
        with pytest.raises(CompileError, match=match.replace("++", r"\+\+")):
            kernel.result(WAIT)


def test_the_compiler_may_be_chosen(
    nothing_left: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wrapper = tmp_path / "my c++"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/calls"\nexec c++ "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", f"'{wrapper}' -DCHOSEN=1")
    with System("host", recover="stale") as lab:
        assert filled(lab.devices[0], jit.compile(lab.devices[0], FILL, "fill"), 3) == [3, 3, 3]
    assert "-DCHOSEN=1" in (tmp_path / "calls").read_text()


def test_a_cache_that_cannot_be_written_is_done_without(
    nothing_left: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And nothing is left of it anywhere; a second kernel is not taken for the first."""
    (tmp_path / "file").write_text("")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("ACCEL_LAB_CACHE", str(tmp_path / "file"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    with System("host", recover="stale") as lab:
        kernel = jit.compile(lab.devices[0], FILL, "fill")
        assert filled(lab.devices[0], kernel, 3) == [3, 3, 3]
        other = jit.compile(lab.devices[0], FILL.replace("= v", "= v + 1"), "fill")
        assert filled(lab.devices[0], other, 3) == [4, 4, 4]
        facts = kernel.inspect().result(WAIT)
        assert (facts.binary, facts.source) == ("", "")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_counters_tell_of_the_disk(lab: System, cpu: Device, tmp_path: Path) -> None:
    kernels = [jit.compile(cpu, f"// {tmp_path}\n{FILL}", "fill").result(WAIT) for _ in range(3)]

    def detail() -> str:
        return next(node.detail for node in lab.tree().walk() if node.name == "jit")

    assert settle(lambda: detail() == "kernels 3, cache hits 2, cache misses 1")
    assert len(kernels) == 3


ENDLESS = "__global__ void endless(float* x) { for (;;) *(volatile float*)x = 1; }"
CRASH = "__global__ void crash(float* x) { *(volatile int*)(x + (1ll << 40)) = 1; }"


@pytest.fixture
def kept() -> Iterator[Device]:
    """Open a device whose buffers are made again."""
    with System("host") as lab:
        yield lab.devices[0]


def test_a_kernel_that_was_taken_back_is_not_run_again_by_the_recovery(kept: Device) -> None:
    """It would never end: only the end of its context has ended it."""
    kernel = jit.compile(kept, ENDLESS, "endless").result(WAIT)
    x = array.full(kept, (3,), 2.0).result(WAIT)
    reply = kernel(1, 1, (x,))
    assert settle(lambda: kept.in_flight == 1)
    reply.cancel()
    kept.replace()
    assert kept.get(x).result(WAIT).tolist() == [2.0, 2.0, 2.0]
    assert kept.generation == 2


def test_a_kernel_that_crashes_among_others_is_told_though_nobody_asks(kept: Device) -> None:
    """What was in flight with it has its result, so that nothing else would tell."""
    kernel = jit.compile(kept, CRASH, "crash").result(WAIT)
    x, y = (array.full(kept, (3,), 2.0).result(WAIT) for _ in range(2))
    kernel(1, 1, (x,))
    assert kept.get(blas.scal(y, 2.0)).result(WAIT).tolist() == [4.0, 4.0, 4.0]
    with pytest.raises(ContextLost, match="SIGSEGV"):
        kept._supervisor._services.background.check()
