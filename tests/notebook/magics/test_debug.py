"""`%debug` after code has failed in a context, in a real IPython."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("IPython", reason="IPython comes with the lab extra")

from accel_lab import System
from accel_lab.compute.user_code import post_mortem
from accel_lab.display import failure
from accel_lab.errors import InvalidArgument, UserCodeError
from tests.notebook.ipython import Lab, notebook


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with System("host") as opened:
        yield opened


@pytest.fixture
def lab(system: System) -> Iterator[Lab]:
    with notebook(system) as opened:
        yield opened


@pytest.fixture
def debugged(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return the calls of IPython's debugger, which would wait for a terminal."""
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(lab.shell.ipython, "debugger", lambda **options: calls.append(options))
    return calls


CELL = """%%gpu gpu
def mean(values, axis):
    total = values.sum(axis)
    words = {'a': [1, 2], 'of': values}
    return total / count
scale = 3
unused = 4
mean(np.ones((1000, 1000)), scale - 3)
"""


def test_it_shows_the_frames_and_their_variables(
    lab: Lab, debugged: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    lab.fail(CELL)
    capsys.readouterr()
    lab("%debug")
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("NameError: name 'count' is not defined, in a context")
    outer, inner = [n for n, line in enumerate(said) if line.startswith("<gpu cell")]
    assert said[outer].endswith("line 7, in <module>")
    assert said[outer + 1] == "  mean(np.ones((1000, 1000)), scale - 3)"
    told = dict(line.split(" = ", 1) for line in said[outer + 2 : inner])
    assert {name.strip() for name in told} == {"mean", "scale"}  # what the cell's code uses
    assert said[inner].endswith("line 4, in mean")
    assert said[inner + 1] == "  return total / count"
    assert [line.split() for line in said[inner + 2 :]] == [
        ["values", "=", "float64[1000,", "1000]"],
        ["axis", "=", "0"],
        ["total", "=", "float64[1000]"],
        ["words", "=", "{'a':", "[1,", "2],", "'of':", "float64[1000,", "1000]}"],
    ]
    assert debugged == []


def test_a_cell_is_called_a_cell_and_has_the_number_that_jupyter_gives_it(lab: Lab) -> None:
    lab("one = 1")
    error = lab.fail(CELL)
    number = lab.shell.ipython.execution_count - 1
    assert f'File "<gpu cell {number}>", line 7, in <module>' in str(error)
    told = failure.short(error)
    assert f"cell {number}: %%gpu gpu\n" in told
    assert "run_cell_magic" not in told
    assert "Correct the cell; " in told
    assert "Correct your function. " in failure.short(lab.fail("gpu.run(lambda: 1 / 0).result()"))


def test_an_object_comes_with_its_own_get_and_that_is_said(lab: Lab) -> None:
    lab("%%gpu gpu\nmodel = {'k': 1}")
    with pytest.raises(InvalidArgument, match=r"instance of ObjectRef: .* its own get, model\.get"):
        lab.gpu.get(lab.names["model"])
    assert lab("model.get()") == {"k": 1}
    with pytest.raises(InvalidArgument, match=r"this is an instance of int$"):
        lab.gpu.get(3)  # type: ignore[arg-type]


def test_it_shows_a_function_of_the_notebook_with_its_line(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab("def half(x):\n    y = x / 2\n    return y / 0\n")
    lab.fail("gpu.run(half, 5).result()")
    capsys.readouterr()
    lab("%debug")
    said = capsys.readouterr().out
    assert "cell 2, line 3, in half\n  return y / 0\n    x = 5\n    y = 2.5\n" in said


def test_the_text_of_a_failure_has_the_notebooks_cell_and_line(lab: Lab) -> None:
    lab("def half(x):\n    y = x / 2\n    return y / 0\n")
    error = lab.fail("gpu.run(half, 5).result()")
    assert str(error) == (
        "ZeroDivisionError: float division by zero\n  cell 2, line 3, in half\n"
        "    return y / 0\n           ~~^~~"
    )


def test_a_failure_that_nobody_awaits_has_the_notebooks_cell_and_line(
    lab: Lab, system: System
) -> None:
    lab("def bad():\n    return {}['no']\n")
    lab("gpu.run(bad); gpu.run(int).result();")
    with pytest.raises(UserCodeError, match=r"cell 2, line 2, in bad\n    return \{\}\['no'\]"):
        system.check()


CHAIN = """%%gpu gpu
def inner():
    raise KeyError("inner")
try:
    inner()
except KeyError as error:
    try:
        raise ValueError("outer") from error
    except ValueError:
        1 / 0
"""


def test_what_led_to_a_failure_is_told_and_carried_over(lab: Lab) -> None:
    error = lab.fail(CHAIN)
    headlines = [line for line in str(error).split("\n") if not line.startswith(" ")]
    assert headlines == [
        "ZeroDivisionError: division by zero",
        "while handling ValueError: outer",
        "caused by KeyError: 'inner'",
    ]
    assert 'raise KeyError("inner")' in str(error)
    last = error.__cause__
    assert type(last) is ZeroDivisionError
    outer = last.__context__
    assert type(outer) is ValueError
    assert type(outer.__cause__) is KeyError
    assert "caused by" not in str(lab.fail(CHAIN.replace("from error", "from None")))


def test_a_chain_is_carried_over_as_far_as_it_pickles(lab: Lab) -> None:
    error = lab.fail(
        "%%gpu gpu\nimport threading\nraise ValueError('outer') from RuntimeError(threading.Lock())"
    )
    assert type(error.__cause__) is ValueError
    assert error.__cause__.__cause__ is None
    assert "caused by RuntimeError: <unlocked _thread.lock" in str(error)


def test_what_only_the_compiler_refuses_shows_the_line_and_no_frame_of_ours(lab: Lab) -> None:
    text = str(lab.fail("%%gpu gpu\nx = 1\nbreak"))
    assert text.startswith("SyntaxError: 'break' outside loop")
    assert "accel_lab" not in text
    assert "line 2\n    break\n" in text


@pytest.mark.parametrize("line", ["await x", "async with x: pass", "[i async for i in x]"])
def test_a_cell_that_awaits_says_what_to_do(lab: Lab, line: str) -> None:
    error = lab.fail(f"%%gpu gpu\nx = 1\n{line}")
    assert isinstance(error, InvalidArgument)
    assert "awaits outside a function: " in str(error)
    assert str(error).endswith(f", line 2: {line}")
    assert "asyncio.run" in error.remedy
    assert lab("%%gpu gpu\nimport asyncio\nasync def f(): await asyncio.sleep(0)\n1") == 1


def test_what_only_the_notebook_has_of_ipython_is_not_said_to_go_along(lab: Lab) -> None:
    error = lab.fail("%%gpu gpu\nget_ipython()")
    assert isinstance(error, UserCodeError)
    assert error.remedy.startswith("Correct the cell")


def test_it_says_why_it_cannot(
    lab: Lab, debugged: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    lab.fail("import threading\ngpu.run(threading.Lock).result()")
    capsys.readouterr()
    lab("%debug")
    assert "%debug cannot show more" in capsys.readouterr().out
    assert debugged == []


def test_on_what_failed_in_the_notebook_it_is_ipythons(lab: Lab, debugged: list[Any]) -> None:
    lab.fail("1 / 0")
    lab("%debug")
    assert debugged == [{"force": True}]


def test_pdb_opens_ipythons_on_what_failed_in_the_notebook_only(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[dict[str, Any]] = []
    ipython = lab.shell.ipython
    monkeypatch.setattr(ipython.InteractiveTB, "debugger", lambda **how: opened.append(how))
    monkeypatch.setattr(ipython, "call_pdb", True)
    lab.fail(CELL)
    assert opened == []
    assert "total  = float64[1000]" in capsys.readouterr().out
    lab.fail("1 / 0")
    assert opened == [{"force": True}]


def test_with_a_statement_it_is_ipythons(
    lab: Lab, debugged: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.fail(CELL)
    steps: list[str] = []
    own = lab.shell.ipython.magics_manager.registry["ExecutionMagics"]
    monkeypatch.setattr(own, "_debug_exec", lambda code, *_: steps.append(code))
    lab("%debug x = 1")
    assert steps == ["x = 1"]
    assert debugged == []


def test_unloading_gives_ipythons_back(lab: Lab) -> None:
    def current() -> Any:
        return lab.shell.ipython.magics_manager.magics["line"]["debug"]

    ours = current()
    lab("%unload_ext accel_lab")
    assert current() == lab.shell.ipython.magics_manager.registry["ExecutionMagics"].debug
    lab("%load_ext accel_lab\n%reload_ext accel_lab")
    assert current() is not ours
    lab("%unload_ext accel_lab")
    assert current() == lab.shell.ipython.magics_manager.registry["ExecutionMagics"].debug


# What is told, and what it costs.


def nothing_held(_: object) -> int:
    return 0


def told(function: Any, *args: Any) -> dict[str, str]:
    """Return what is told of the innermost frame of a function that fails."""
    try:
        function(*args)
    except Exception as error:  # noqa: BLE001 - whatever it is
        return dict(post_mortem.frames_of(error, nothing_held)[-1][4])
    raise AssertionError


def failing(value: Any) -> None:
    raise ValueError(value)


class Rude:
    def __repr__(self) -> str:
        raise OSError


class Exiting:
    def __repr__(self) -> str:
        raise SystemExit


class deque:  # noqa: N801 - not the one that reprlib takes it for
    def __repr__(self) -> str:
        return "my own"


class Stopped:
    def __str__(self) -> str:
        return "Stopped"

    def __repr__(self) -> str:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.arange(3), "int64[3] [0, 1, 2]"),
        (np.float32(2.5), "float32[] 2.5"),
        (np.zeros(101), "float64[101]"),
        ("two\nlines", r"'two\nlines'"),
        (Rude(), "<its repr raised OSError>"),
        (Exiting(), "<its repr raised SystemExit>"),
        ([deque()], "[my own]"),
        (list(range(100)), "[0, 1, 2, 3, 4, 5, 6, 7, ...]"),
    ],
    ids=["array", "scalar", "large array", "text", "rude", "exit", "name", "list"],
)
def test_values_are_told_on_one_line(value: Any, text: str) -> None:
    assert told(failing, value) == {"value": text}


def test_a_text_is_cut() -> None:
    assert len(told(failing, "x" * 10_000)["value"]) <= post_mortem.TEXT
    assert len(told(failing, dict.fromkeys(range(100), "x" * 10_000))["value"]) == post_mortem.TEXT


def test_without_time_there_are_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post_mortem, "LIMIT_S", -1.0)
    assert told(failing, Rude()) == {"value": "<Rude>"}
    assert told(failing, np.zeros(3)) == {"value": "<ndarray>"}


def test_all_of_it_fits_into_a_message(lab: Lab) -> None:
    lab(
        "%%gpu gpu\n"
        "names = ', '.join(f'v{n}=\"{chr(233) * 500}\"' for n in range(100))\n"
        "exec(f'def deep(n, {names}):\\n    return deep(n - 1) if n else 1 / 0')"
    )
    error = lab.fail("%%gpu gpu\ndeep(100)")
    assert isinstance(error, UserCodeError)
    assert len(error.frames) == post_mortem.FRAMES
    assert all(len(frame[4]) == post_mortem.LOCALS for frame in error.frames)
    texts = [text for frame in error.frames for _, text in frame[4]]
    assert sum(map(len, texts)) < post_mortem.ALL_TEXT + 10 * len(texts)


def test_after_an_interrupt_there_are_types() -> None:
    def passing(value: Any) -> str:
        text = "told before"
        failing(value)
        return text

    with pytest.raises(ValueError, match="Stopped") as caught:
        passing(Stopped())
    *_, outer, inner = post_mortem.frames_of(caught.value, nothing_held)
    assert inner[4] == [("value", "<Stopped>")]
    assert outer[4] == [("value", "<Stopped>"), ("text", "<str>")]
