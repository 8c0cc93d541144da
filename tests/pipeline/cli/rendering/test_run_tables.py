import io

import pytest
from rich.console import Console

from regard.pipeline.cli.rendering import run_tables

SCORES = [
    {"name": "bleu", "label": "BLEU", "value": 33.1267, "scale": 100.0},
    {"name": "exact_match", "label": "exact match", "value": 0.5, "scale": 1.0},
    {"name": "spearman", "label": "Spearman", "value": None, "scale": 1.0},
]
RECORDS = [
    {"name": "quickstart", "id": "20261122-061648", "status": "not blessed", "scores": SCORES}
    | {"blessed": False, "parent": "2", "seconds": 62.0},
    {"name": "quickstart", "id": "20261122-061647", "status": "running"},
]
SPANS = [{"name": "6", "replayed": True}, {"name": "7"}]
DATA = {"fingerprint": "f" * 64, "rows": {"train": 5000}, "spans": SPANS}
OTHER_DATA = {"fingerprint": None, "rows": {"train": 5000, "test": 7}, "spans": [], "findings": []}
BLEU = {"name": "bleu", "label": "BLEU", "scale": 100.0, "comparable": True, "better": "b"}
SIDE = {"run": "quickstart/20261122-061648", "status": "succeeded", "started": 0.0}
SIDE |= {"seconds": 62.0, "pushed_version": "2"}
DIFF = {
    "a": SIDE,
    "b": {**SIDE, "run": "other/20261122-061649", "parent": "1"},
    "config": [{"key": "model.attention.a-very-long-name", "a": None, "b": "dot"}],
    "data": {"a": {**DATA, "findings": ["1 empty line"]}, "b": OTHER_DATA, "same": None},
    "scores": [
        {
            **BLEU,
            "a": {"value": 33.1267, "interval": {"low": 32.0, "high": 34.0}},
            "b": {"value": 35.0, "interval": {"low": 34.5, "high": 36.0}},
            "difference": 1.8733,
            "intervals_overlap": False,
        },
        {"name": "chrf", "label": "chrF", "scale": 100.0, "a": {"value": 50.0}},
    ],
    "nodes": [
        {"name": "Trainer", "b": {"state": "cached"}}
        | {"a": {"state": "done", "seconds": 20.0, "peak_bytes": 3 << 29}},
        {"name": "Pusher", "a": {"state": "failed", "seconds": 1.0}},
    ],
    "regard": [{"key": "commit", "a": "c" * 40 + "+dirty"}],
    "stack": [],
    "machine": [{"key": "memory_bytes", "a": 8 << 30, "b": 16 << 30}],
}


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
    records = [{**RECORDS[0], "data": {"spans": SPANS}}, RECORDS[1]]
    heading, first, second = printed(run_tables.print_listing, records, 20, False)
    column = heading.index("spans")
    assert first[column:].startswith("7, replaying 6  BLEU 33.13")
    assert len(second) < column


def test_difference_in_a_pipe_has_one_line_per_row():
    lines = printed(run_tables.print_diff, DIFF, 20, False)
    row = {line.split("  ")[0] or line.strip().split("  ")[0]: line for line in lines}
    assert row["run"].split()[1:] == ["quickstart/20261122-061648", "other/20261122-061649"]
    assert row["baseline version"].split()[-2:] == ["-", "1"]
    assert row["model.attention.a-very-long-name"].split()[1:] == ["null", "dot"]
    assert row["fingerprint"].split()[1:] == ["ffffffffffff", "unknown"]
    assert row["spans"].split("  ")[-1] == "-"
    assert "7, replaying 6" in row["spans"]
    assert row["test rows"].split()[-2:] == ["-", "7"]
    assert row["train rows"].split()[-2:] == ["5,000", "5,000"]
    assert row["warning"].split() == ["warning", "1", "empty", "line", "-"]
    assert "(test data may differ)" in row["scores"]
    assert row["BLEU"].split(maxsplit=1)[1].split("  ")[0] == "33.13 [32.00, 34.00]"
    assert row["BLEU"].endswith("  +1.87, intervals disjoint")
    assert row["chrF"].split()[1:] == ["50.00", "-"]
    assert row["Trainer"].split()[1:] == ["20", "s,", "1.5", "GiB", "cached"]
    assert row["Pusher"].split()[1:] == ["failed", "-"]
    assert row["commit"].split()[1:] == ["cccccccccccc+dirty", "-"]
    assert row["libraries"].endswith("identical")
    assert row["memory_bytes"].split()[1:] == ["8.0", "GiB", "16.0", "GiB"]


def test_long_warning_does_not_widen_a_column():
    def widest(text):
        data = {**DIFF["data"], "a": {**DIFF["data"]["a"], "findings": [text]}}
        lines = printed(run_tables.print_diff, {**DIFF, "data": data}, 20, False)
        return max(len(line) for line in lines if text not in line)

    assert widest("1 empty line") == widest("1 empty line; first train.tsv:7: " + 200 * "x")


@pytest.mark.parametrize("width", [80, 120])
def test_a_difference_in_a_terminal_is_folded_to_its_width(width):
    lines = printed(run_tables.print_diff, DIFF, width, True)
    assert max(map(len, lines)) <= width
    assert any("+1.87" in line for line in lines)
