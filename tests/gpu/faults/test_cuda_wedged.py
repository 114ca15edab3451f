"""Contexts on a card that live and do nothing are replaced, and those that work are not."""

from contextlib import ExitStack

import pytest

from accel_lab import System
from tests.faults.wedged import DEVICES, assert_replaced, limit

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("rings", [True, False])
def test_both_are_replaced_and_those_that_work_are_not(
    monkeypatch: pytest.MonkeyPatch,
    rings: bool,  # noqa: FBT001
) -> None:
    """Four contexts share one card, each of a system of its own."""
    limit(monkeypatch, rings=rings)
    with ExitStack() as stack:
        assert_replaced([stack.enter_context(System("cuda", devices=1)) for _ in range(DEVICES)])
