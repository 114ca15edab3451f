"""Tables as text: aligned where there is room, folded where there is none."""

from accel_lab.display.table import WIDTH, as_text, as_tree, folded

COLUMNS = ("Actor", "In flight", "Kept by")


def test_columns_that_fit_stay_in_one_line() -> None:
    assert as_text(COLUMNS, [("cpu0", "12", "images")], {"In flight"}) == [
        "Actor  In flight  Kept by",
        "cpu0          12  images",
    ]


def test_a_row_stays_one_line_where_no_width_is_given() -> None:
    head, row = as_text(COLUMNS, [("cpu0", "12", "x" * 200)])
    assert row.endswith("x" * 200)
    assert head == "Actor  In flight  Kept by"


def test_a_head_gives_way_before_a_cell() -> None:
    assert as_text(COLUMNS, [("cpu0", "12", "images")], {"In flight"}, width=23) == [
        "Actor      In  Kept by",
        "       flight",
        "cpu0       12  images",
    ]


def test_a_long_cell_takes_several_lines_and_loses_nothing() -> None:
    cause = "the context lost its device: " + "an illegal address " * 5
    lines = as_text(COLUMNS, [("cpu0", "12", cause), ("cpu1", "0", "x")], {"In flight"}, WIDTH)
    assert max(map(len, lines)) <= WIDTH
    assert [line[:5] for line in lines] == ["Actor", "     ", "cpu0 ", "     ", "cpu1 "]
    assert " ".join(cause.split()) in " ".join(" ".join(line[13:].split()) for line in lines)


def test_a_word_that_is_too_long_is_broken() -> None:
    (_, *lines) = as_text(("Name", "Size"), [("x" * 100, "256 KiB")], width=WIDTH)
    assert max(map(len, lines)) <= WIDTH
    assert "".join(line.split("  ")[0] for line in lines).count("x") == 100
    assert lines[0].endswith("  256 KiB")


def test_notes_stand_below_their_rows_inside_the_branch() -> None:
    rows = [
        ("", "lab", "1", "here"),
        ("├─ ", "cpu0", "1", "word " * 20),
        ("└─ ", "cpu1", "0", ""),
    ]
    first, lab, here, cpu0, *words, cpu1 = as_tree(("Actor", "Mailbox"), rows, {"Mailbox"})
    assert (first, lab, here) == ("Actor    Mailbox", "lab            1", "   here")
    assert (cpu0, cpu1) == ("├─ cpu0        1", "└─ cpu1        0")
    assert len(words) == 2
    assert all(line.startswith("│     word") and len(line) <= WIDTH for line in words)


def test_a_short_note_may_stand_beside_its_row() -> None:
    rows = [("", "12", "Gemm", "done"), ("", "13", "Gemm", "failed " * 12)]
    _, short, row, *note = as_tree(("entry", "what"), rows, beside=True)
    assert short == "12     Gemm → done"
    assert row == "13     Gemm"
    assert len(note) == 2


def test_a_line_is_folded_only_where_it_is_too_long() -> None:
    assert folded("") == [""]
    assert folded("a  b") == ["a  b"]
    first, further = folded("word " * 20)
    assert len(first) <= WIDTH
    assert further.startswith("    word")
