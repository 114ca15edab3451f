"""A snapshot of the actors, as a cell shows it."""

from accel_lab.compute.events.tree import Node
from accel_lab.display.table import NOTE
from tests.cells import outputs_of

CAUSE = "its process ended with SIGKILL & more; " * 8
LAB = Node(
    name="lab",
    path="lab",
    kind="system",
    state="running",
    children=(
        Node(
            name="gpu0",
            path="lab/gpu0",
            kind="device",
            state="restarting",
            generation=2,
            in_flight=12,
            used_bytes=1 << 30,
            total_bytes=4 << 30,
            restarts=1,
            detail=CAUSE,
            children=(
                Node(name="context", path="lab/gpu0/context", kind="context", state="starting"),
            ),
        ),
        Node(name="mine", path="lab/mine", kind="actor", state="running", mailbox=3),
    ),
)


def test_a_tree_reads_as_indented_lines() -> None:
    lines = repr(LAB).splitlines()
    assert lines[:3] == [
        "Actor          State       Gen  Mailbox  In flight  Memory     Restarts",
        "lab            running                0          0                    0",
        "├─ gpu0        restarting  g2         0         12  1 / 4 GiB         1",
    ]
    below = [line.removeprefix("│     ") for line in lines[3:-2]]
    assert " ".join(below) == (CAUSE if len(CAUSE) <= NOTE else f"{CAUSE[: NOTE - 1]}…")
    assert lines[-2:] == [
        "│  └─ context  starting               0          0                    0",
        "└─ mine        running                3          0                    0",
    ]


def test_the_table_has_a_row_for_each_actor_and_the_whole_detail() -> None:
    table = LAB._repr_html_()
    for node in LAB.walk():
        assert f'<th scope="row">{node.path}</th><td>{node.state}</td>' in table
    assert f"<td>{CAUSE.replace('&', '&amp;')}</td>" in table
    assert "style" not in table


def test_a_cell_shows_the_tree_of_a_system_and_what_its_events_are() -> None:
    _, (tree,), (events,), _ = outputs_of(
        "from accel_lab import System\nlab = System('host', name='lab', devices=1)",
        "lab.tree()",
        "lab.events",
        "lab.close()",
    )
    assert "└─ cpu0" in tree.data["text/plain"]
    assert tree.data["text/html"].startswith("<table><caption>lab: running</caption>")
    assert events.data["text/plain"].startswith("<EventStream of ")
    assert "ActorStarted" in events.data["text/plain"]
