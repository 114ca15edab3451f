"""How much one request may display, and what it may print."""

from typing import Any

import pytest

from accel_lab.compute.output.displays import Cleared, Gathering, Shown
from accel_lab.compute.output.printing import DISPLAYS_BYTES, Printer, Screen
from accel_lab.compute.wire.codec import Display, Output, Report


class Wire:
    """Keeps what is sent, as the lengths of displays, None for a clearing, and texts."""

    def __init__(self) -> None:
        self.busy_seq = 7
        self.heard: list[int | str | None] = []
        self._gathering = Gathering()

    def send(self, reports: list[Report]) -> None:
        for report in reports:
            if isinstance(report, Output):
                self.heard.append(report.text)
            elif isinstance(report, Display):
                act = self._gathering.take(report)
                if isinstance(act, Shown):
                    self.heard.append(len(act.data["text/plain"]))
                elif isinstance(act, Cleared):
                    self.heard.append(None)

    def offer(self, reports: list[Report]) -> bool:
        self.send(reports)
        return True


def shown(nbytes: int, *, update: bool = False) -> Shown:
    return Shown({"text/plain": "x" * nbytes}, {}, {"display_id": "a"}, update)


def test_what_is_displayed_is_bounded_in_bytes_and_small_things_still_fit() -> None:
    wire = Wire()
    screen = Screen(wire)
    most = DISPLAYS_BYTES - 10_000
    for act in (shown(most), shown(most), shown(20), shown(most, update=True)):
        screen.show(act)
    screen.finish()
    screen.finish()
    told = "accel_lab: 1 more display is not shown\n"
    assert wire.heard == [most, 20, most, told]


def test_a_new_request_and_a_clearing_begin_anew() -> None:
    wire = Wire()
    screen = Screen(wire)
    most = DISPLAYS_BYTES - 10_000
    screen.show(shown(most))
    screen.show(Cleared(wait=False))
    screen.show(shown(most))
    screen.show(shown(most))
    wire.busy_seq = 8
    screen.show(shown(most))
    screen.finish()
    told = "accel_lab: 1 more display is not shown\n"
    assert wire.heard == [most, None, most, told, most]


@pytest.mark.parametrize("thing", [5, b"abc", None])
def test_what_is_no_text_is_not_written(thing: Any) -> None:
    """The thread that sends unfinished lines has met it there, and with that the context ended."""
    wire = Wire()
    printer = Printer(wire, "stdout")
    printer.write("before ")
    with pytest.raises(TypeError, match="must be str"):
        printer.write(thing)
    printer.look()
    printer.finish()
    assert wire.heard == ["before "]


def test_what_cannot_be_encoded_is_written_as_its_escape() -> None:
    wire = Wire()
    printer = Printer(wire, "stdout")
    assert printer.write("name \udcff") == 6
    printer.look()
    printer.write("é\n")
    assert wire.heard == ["name \\udcff", "é\n"]
