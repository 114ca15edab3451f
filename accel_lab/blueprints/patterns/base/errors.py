"""The errors that patterns answer with, beside those of the actors and devices below them."""

from typing import Any

from accel_lab.errors import AccelError, StageFailed


class RequestExpired(AccelError, TimeoutError, fields=("waited_s", "began")):
    """A request to a pattern had no answer within its `timeout_s`.

    Attributes:
        waited_s: how long it had been there.
        began: whether a function had begun with it.
    """

    remedy = "Raise its timeout_s, or send less at once: server.statistics says how long they take."
    waited_s: float = 0.0
    began: bool = False


class WrongAnswer(AccelError, fields=("expected", "found")):
    """The function of a pattern answered in another form than it should, so all its requests fail.

    Attributes:
        expected: what it should have returned.
        found: what it returned.
    """

    remedy = "Correct the function: the text says what it should return, and what it did."
    expected: str = ""
    found: str = ""


class NoReplica(AccelError, fields=("why",)):
    """No replica of a pool may take a request.

    Attributes:
        why: the reason of each replica, by its name.
    """

    remedy = "Look at why: reset a device, or add a replica with pool.scale(n)."
    why: dict[str, str]


class SwapRefused(AccelError, fields=("compared", "differing")):
    """A model was not swapped: the new one failed, or its answers differ; the old one serves on.

    Attributes:
        compared: how many answers were compared.
        differing: how many of them differed.
    """

    remedy = "Look at __cause__ and differing. The old model serves on."
    compared: int = 0
    differing: int = 0


def stage_failed(who: str, stage: str, number: int, runs: int, error: BaseException) -> StageFailed:
    """Return the failure of one request, whose function failed with `error`.

    Parameters:
        who: the pattern's name.
        number: the request's.
    """
    times = f" {runs} times" if runs > 1 else ""
    text = f"stage {stage} of {who} failed{times} on request {number}: {_head(error)}"
    failed = StageFailed(text, stage=stage, item=number, runs=runs, remedy="Look at __cause__.")
    failed.__cause__ = error
    return failed


def cause_of(error: BaseException) -> BaseException:
    """Return what a failure comes of, however many patterns it went through."""
    while isinstance(error, StageFailed) and error.__cause__ is not None:
        error = error.__cause__
    return error


def wrong_answer(who: str, stage: str, expected: str, found: Any) -> WrongAnswer:
    """Return the failure of requests whose function answered in another form."""
    kind = type(found).__name__
    shape = getattr(found, "shape", None)
    if shape is not None:
        told = f"{kind} of shape {tuple(shape)}"
    elif hasattr(found, "__len__") and not isinstance(found, str | bytes):
        told = f"{kind} of {len(found)}"
    else:
        told = kind
    text = f"stage {stage} of {who} returned a {told}; expected was {expected}"
    return WrongAnswer(text, expected=expected, found=told)


def _head(error: BaseException) -> str:
    first = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
