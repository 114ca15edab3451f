"""How much one request may display."""

from accel_lab.compute.displays import Cleared, Gathering, Shown
from accel_lab.compute.printing import DISPLAYS_BYTES, Screen
from accel_lab.compute.wire import Display, Output, Report


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
