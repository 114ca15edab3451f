"""The page on ONNX models lists the operators that there are."""

import re

from accel_lab.onnx import operators
from accel_lab.onnx.registry import OPERATORS
from tests.project import ROOT


def test_every_operator_is_on_the_page_and_no_other() -> None:
    page = (ROOT / "docs" / "how-to" / "run-an-onnx-model.md").read_text()
    table = page.partition("| Of | Operators |")[2].partition("\n\n")[0]
    assert operators.__doc__
    assert re.findall(r"`(\w+)`", table)
    assert sorted(re.findall(r"`(\w+)`", table)) == sorted(OPERATORS)
