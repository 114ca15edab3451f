"""The failure of a request: kept by many, raised as a copy."""

import gc
import weakref

import pytest

from accel_lab.actor.reply import Reply
from accel_lab.errors import AccelError, DeadlineExceeded, InvalidArgument, OutOfMemory


class Odd(AccelError, fields=("number",)):
    """An error of somebody else, whose constructor does not take its `args`."""

    number: int

    def __init__(self, number: int, *, word: str) -> None:
        super().__init__(f"{number} is {word}")
        self.number = number


class TwoParts(AccelError):
    """An error with more than one text."""

    def __init__(self) -> None:
        super().__init__()
        self.args = "two", "parts"


@pytest.mark.parametrize(
    "error",
    [
        OutOfMemory("full", asked_bytes=3, free_bytes=2, owners=(("a", 1),)),
        DeadlineExceeded("late", generation=4, code=700, name="SIGKILL"),
        TwoParts(),
        Odd(7, word="odd"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_failure_is_raised_as_its_equal(error: AccelError) -> None:
    error.add_note("a note")
    error.__cause__ = ZeroDivisionError("why")
    reply: Reply[None] = Reply()
    reply.reject(error)
    with pytest.raises(type(error)) as caught:
        reply.result(0)
    raised = caught.value
    assert raised is not error
    assert (type(raised), str(raised), raised.args) == (type(error), str(error), error.args)
    assert vars(raised) == vars(error)
    assert raised.taken
    assert raised.__cause__ is error.__cause__
    raised.add_note("of the catcher")
    assert error.__notes__ == ["a note"]


def test_a_failure_that_is_not_chained_stays_so() -> None:
    error = InvalidArgument("no")
    assert not error.copy().__suppress_context__
    error.__cause__ = None
    assert error.copy().__suppress_context__


def test_a_failure_that_is_raised_often_shows_each_catcher_its_own_lines() -> None:
    error = InvalidArgument("no")
    replies: list[Reply[None]] = [Reply(), Reply()]
    caught = []
    for reply in replies:
        reply.reject(error)
        with pytest.raises(InvalidArgument) as one:
            reply.result(0)
        caught.append(one.value)
    assert caught[0].__traceback__ is not caught[1].__traceback__
    assert error.__traceback__ is None
    assert error.__context__ is None


def test_a_failed_reply_keeps_no_variable_of_whoever_caught_it() -> None:
    class Variable:
        pass

    reply: Reply[None] = Reply()
    reply.reject(InvalidArgument("no"))

    def catcher() -> "weakref.ref[Variable]":
        variable = Variable()
        try:
            reply.result(0)
        except InvalidArgument:
            return weakref.ref(variable)
        raise AssertionError

    gc.disable()  # a cycle would keep an array until the collector runs
    try:
        gone = catcher()
        assert gone() is None
    finally:
        gc.enable()
    assert reply.failed


def test_an_answer_says_how_it_is_had() -> None:
    reply: Reply[int] = Reply()
    assert repr(reply) == "<Reply pending: await it or call .result()>"
    assert "await it or call .result()" in reply._repr_html_()
    reply.reject(InvalidArgument("too many"))
    assert repr(reply) == "<Reply failed: too many>"
    assert ".result()" not in reply._repr_html_()
