import random

import pytest

from regard.components.data.corpus_plan import CorpusPlan, read_split, survey_corpus
from regard.components.data.near_duplicates import similarity
from regard.core.errors import UserError
from tests.components.corpora import CAPTIONED, POINTED, picture, resolved, table, write_files

WORDS = ["dog", "cat", "runs", "sleeps", "over", "under", "the", "green", "table", "quickly"]
DRAW = random.Random(4)
PLAIN = [(" ".join(DRAW.choices(WORDS, k=9)), f"wort {i} von vielen") for i in range(120)]
OTHERS = [("a new sentence about nothing at all", "neu"), (PLAIN[7][0].upper(), "7"), PLAIN[9]]
FAULTS = {
    "empty_side": (" ", "leer"),
    "length_ratio": ("lang", "l" * 60),
    "too_long": ("w " * 60, "w " * 60),
    "same_sides": ("Tom!", "Tom!"),
    "control_characters": ("a\u200bb", "c"),
    "encoding": ("das ist schÃ¶n", "nice"),
    "script": ("что", "what"),
}
CHECKS = {name: {"action": "drop"} for name in (*FAULTS, "duplicates", "overlap", "near_overlap")}
CHECKS["length_ratio"]["ratio"] = 10.0
CHECKS["too_long"]["characters"] = 100
FILES = {"eval": "rest.tsv", "test": "rest.tsv"}


def survey(root, **section):
    """The summary of a corpus, and the lines that each check changes."""
    plan = CorpusPlan(resolved(root, **{"bad_rows_limit": 0.3, **FILES, **section}))
    summary = survey_corpus(plan)
    rows = [tuple(row[1]) for _, row in read_split(plan, "train")]
    assert len(rows) == summary.rows["train"]
    changes = summary.problems.changes
    return summary, rows, {k: [e.line for e in v.examples] for k, v in changes.items()}


def test_each_check_drops_its_rows_of_train(tmp_path):
    rows = [*PLAIN, *FAULTS.values(), PLAIN[3], PLAIN[3]]
    faulty = table(*OTHERS, *FAULTS.values())
    write_files(tmp_path, {"a.tsv": table(*rows), "rest.tsv": faulty})
    summary, trained, changes = survey(tmp_path, train="a.tsv", checks=CHECKS)
    alone = {f"{name}/dropped": [121 + i] for i, name in enumerate(FAULTS)}
    near = [i for i, (text, _) in enumerate(PLAIN, 1) if similarity(text, OTHERS[1][0]) >= 0.8]
    repeated = {"duplicates/dropped": [128, 129], "overlap/dropped": [10]}
    assert changes == {**alone, **repeated, "near_overlap/dropped": near}
    assert 8 in near
    dropped = {line for lines in changes.values() for line in lines}
    assert trained == [row for line, row in enumerate(rows, 1) if line not in dropped]
    assert summary.rows["test"] == summary.rows["eval"] == len(OTHERS) + len(FAULTS)
    (note,) = [note for note in summary.notes if note.startswith("script")]
    assert note == f"script: 1 row dropped; the first is {tmp_path}/a.tsv:127: 'что | what'"


def test_rows_of_one_line_are_judged_alone(tmp_path):
    """All units of a TMX file may be on one line."""
    pairs = [*PLAIN[:20], PLAIN[3], PLAIN[3], *PLAIN[20:40]]
    units = [
        f"<tu><tuv lang='en'><seg>{one}</seg></tuv><tuv lang='de'><seg>{other}</seg></tuv></tu>"
        for one, other in pairs
    ]
    content = f"<tmx version='1.4'><header/><body>{''.join(units)}</body></tmx>"
    write_files(tmp_path, {"a.tmx": content, "rest.tmx": content.replace("wort", "andere")})
    summary, trained, _ = survey(
        tmp_path,
        train="a.tmx",
        eval="rest.tmx",
        test="rest.tmx",
        columns={"source": "en", "target": "de"},
        checks={"duplicates": {"action": "drop"}},
    )
    assert trained == PLAIN[:40]
    assert summary.problems.unused == {"duplicates/dropped": 2}


@pytest.mark.parametrize("name", CHECKS)
def test_checks_that_do_not_drop_change_nothing(tmp_path, name):
    rows = [*PLAIN, *FAULTS.values(), PLAIN[3]]
    write_files(tmp_path, {"a.tsv": table(*rows), "rest.tsv": table(*OTHERS)})
    others = {key: {**check, "action": "warn"} for key, check in CHECKS.items()}
    _, _, changes = survey(tmp_path, train="a.tsv", checks={**others, name: CHECKS[name]})
    assert list(changes) == [f"{name}/dropped"]
    assert not survey(tmp_path, train="a.tsv", checks=others)[2]


def test_result_does_not_depend_on_files(tmp_path):
    rows = [*PLAIN, *FAULTS.values(), *PLAIN[:5]]
    parts = {f"{n}.tsv": table(*rows[40 * n : 40 * n + 40]) for n in range(4)}
    write_files(tmp_path, {"all.tsv": table(*rows), "rest.tsv": table(*OTHERS), **parts})
    one = survey(tmp_path, train="all.tsv", checks=CHECKS)
    several = survey(tmp_path, train="[0-3].tsv", checks=CHECKS)
    assert one[1] == several[1]
    assert one[0].problems.unused == several[0].problems.unused


def test_rows_are_dropped_before_they_are_split(tmp_path):
    write_files(tmp_path, {"a.tsv": table(*PLAIN, *[FAULTS["empty_side"]] * 5, *PLAIN)})
    section = {"train": "a.tsv", "split": {"eval": 0.3, "test": 0.3}, "bad_rows_limit": 1.0}
    checks = {name: {"action": "drop"} for name in ("empty_side", "duplicates")}
    summary = survey_corpus(CorpusPlan(resolved(tmp_path, **section, checks=checks)))
    # Duplicates within eval and test stay.
    assert summary.rows["train"] + (summary.rows["eval"] + summary.rows["test"]) // 2 == len(PLAIN)
    assert summary.problems.unused["empty_side/dropped"] == 5
    assert summary.problems.unused["duplicates/dropped"] == summary.rows["train"]


def test_encoding_is_repaired(tmp_path):
    rows = [*PLAIN, FAULTS["encoding"]]
    write_files(tmp_path, {"a.tsv": table(*rows), "rest.tsv": table(*OTHERS, FAULTS["encoding"])})
    checks = {"encoding": {"action": "repair"}}
    summary, trained, changes = survey(tmp_path, train="a.tsv", checks=checks, bad_rows_limit=0.0)
    assert trained == [*PLAIN, ("das ist schön", "nice")]
    assert changes == {"encoding/repaired": [121]}
    assert summary.notes[0].endswith("'das ist schÃ¶n | nice' → 'das ist schön | nice'")


def test_limit_of_dropped_rows(tmp_path):
    rows = [*PLAIN[:80], *[FAULTS["empty_side"]] * 15, *[FAULTS["same_sides"]] * 5]
    write_files(tmp_path, {"a.tsv": table(*rows), "rest.tsv": table(*OTHERS)})
    checks = {name: {"action": "drop"} for name in ("empty_side", "same_sides")}
    summary, *_ = survey(tmp_path, train="a.tsv", checks=checks, bad_rows_limit=0.19)
    assert summary.rows["train"] == 80
    with pytest.raises(UserError) as caught:
        survey(tmp_path, train="a.tsv", checks=checks, bad_rows_limit=0.18)
    assert "20 of 106 rows (18.87%) would be skipped; the limit is 18.00%" in caught.value.message
    assert "(empty_side/dropped 15, same_sides/dropped 5)" in caught.value.message
    assert caught.value.where == f"{tmp_path}/a.tsv:81"


def test_rows_of_the_window_remain_rather_than_replayed_ones(tmp_path):
    spans = {"1.tsv": table(*PLAIN[:60]), "2.tsv": table(*PLAIN[40:100])}
    write_files(tmp_path, {**spans, "rest.tsv": table(*OTHERS)})
    section = {"train": "{SPAN}.tsv", "spans": {"window": 1, "replay": 0.4}}
    checks = {"duplicates": {"action": "drop"}}
    summary, trained, changes = survey(tmp_path, **section, checks=checks)
    assert trained[:60] == PLAIN[40:100]
    assert set(trained[60:]) <= set(PLAIN[:40])
    assert changes == {"duplicates/dropped": [*range(41, 51)]}  # the first ten examples
    assert summary.problems.unused == {"duplicates/dropped": 20}


def test_images_and_points(tmp_path):
    files = {"a.png": picture(), "copy.png": picture(), "b.png": picture(shade=9)}
    rows = [("a.png", "one"), ("copy.png", "one"), ("b.png", "two")]
    write_files(tmp_path, {**files, "a.tsv": table(*rows), "rest.tsv": table(rows[2])})
    checks = {name: {"action": "drop"} for name in ("duplicates", "overlap", "near_overlap")}
    section = {"train": "a.tsv", **FILES, "checks": checks, "bad_rows_limit": 1.0}
    plan = CorpusPlan(resolved(tmp_path, CAPTIONED, **section))
    assert survey_corpus(plan).problems.unused == {"duplicates/dropped": 1, "overlap/dropped": 1}
    points = [("[[0, 0], [1, 0], [0, 1]]", "0 1 2"), ("[[0, 0], [2, 0], [0, 1]]", "0 1 2")]
    write_files(tmp_path, {"a.tsv": table(*points, points[0]), "rest.tsv": table(points[1])})
    plan = CorpusPlan(resolved(tmp_path, POINTED, **section))
    assert survey_corpus(plan).problems.unused == {"duplicates/dropped": 1, "overlap/dropped": 1}
