import io

from rich.console import Console

from regard.components.common.run_record import NOT_BLESSED, RUNNING, RunRecord
from regard.pipeline.cli.rendering import run_tables

SCORES = [
    {"name": "bleu", "label": "BLEU", "value": 33.1267, "scale": 100.0},
    {"name": "exact_match", "label": "exact match", "value": 0.5, "scale": 1.0},
    {"name": "spearman", "label": "Spearman", "value": None, "scale": 1.0},
]
RECORDS = [
    RunRecord(
        name="quickstart",
        id="20261122-061648",
        status=NOT_BLESSED,
        scores=SCORES,
        blessed=False,
        parent="2",
        seconds=62.0,
    ),
    RunRecord(name="quickstart", id="20261122-061647", status=RUNNING),
]
SPANS = [{"name": "6", "replayed": True}, {"name": "7"}]


def printed(show, what, width, terminal):
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)
    show(what, console)
    return console.file.getvalue().splitlines()


def test_a_wide_terminal_gets_one_line_a_run():
    lines = printed(run_tables.print_listing, RECORDS, 140, True)
    assert len(lines) == 3
    assert "not blessed  no" in lines[1]
    assert lines[1].endswith("1:02  BLEU 33.13, exact match 0.5000, Spearman undefined")


def test_a_narrow_terminal_gets_the_scores_below():
    heading, first, scores, second = printed(run_tables.print_listing, RECORDS, 80, True)
    assert "scores" not in heading
    assert first.endswith("1:02")
    assert scores.strip().startswith("BLEU 33.13,")
    assert "running" in second
    assert max(map(len, (heading, first, scores, second))) <= 80


def test_a_pipe_gets_unbroken_lines_without_padding():
    lines = printed(run_tables.print_listing, RECORDS, 20, False)
    assert len(lines) == 3
    assert [line for line in lines if line != line.rstrip()] == []


def test_spans_have_a_column_if_there_are_any():
    column = printed(run_tables.print_listing, RECORDS, 20, False)[0].find("spans")
    assert column == -1
    records = [RECORDS[0].model_copy(update={"data": {"spans": SPANS}}), RECORDS[1]]
    heading, first, second = printed(run_tables.print_listing, records, 20, False)
    column = heading.index("spans")
    assert first[column:].startswith("7, replaying 6  BLEU 33.13")
    assert len(second) < column
