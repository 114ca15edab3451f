"""Contexts that live and do nothing: frozen by a signal, or reading no more of what comes."""

import pytest

from accel_lab import System
from tests.faults.wedged import DEVICES, assert_replaced, limit


@pytest.mark.parametrize("rings", [True, False])
def test_both_are_replaced_and_those_that_work_are_not(
    monkeypatch: pytest.MonkeyPatch,
    rings: bool,  # noqa: FBT001
) -> None:
    limit(monkeypatch, rings=rings)
    with System("host", devices=DEVICES) as lab:
        assert_replaced([lab])
