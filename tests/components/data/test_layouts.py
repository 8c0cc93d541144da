"""The first row by feature, remarkable columns, and files that do not agree."""

import pytest

from regard.components.data.corpus_plan import CorpusPlan, survey_corpus
from regard.components.data.layouts import Layout, describe_first_row, merge_layouts
from regard.core.errors import UserError
from tests.components.corpora import checks_of, resolved, write_files

PAIRS = "".join(f"One {i}.\tUn {i}.\n" for i in range(200))
SWAPPED = "".join(f"Un {i}.\tOne {i}.\n" for i in range(200, 400))
PAGE = {"checks": checks_of()}


def survey(folder, files, **section):
    write_files(folder, files)
    return survey_corpus(CorpusPlan(resolved(folder, **PAGE, **section)))


SPLITS = {"train": "1.tsv", "eval": "2.tsv", "test": "2.tsv"}
LIST = {"train": ["1.tsv", "2.tsv"]}


@pytest.mark.parametrize("section", [SPLITS, LIST])
@pytest.mark.parametrize(
    ("first", "second", "columns", "remedy"),
    [
        ("tgt\tsrc\n" + SWAPPED, PAIRS, None, "{source: 2, target: 1}"),
        (PAIRS, "tgt\tsrc\n" + SWAPPED, None, "{source: 2, target: 1}"),
        ("en\tfr\n" + PAIRS, "fr\ten\n" + SWAPPED, (1, 2), "{source: en, target: fr}"),
        ("title\ttext\n" + PAIRS, "title\tsummary\n" + SWAPPED, None, "{source: text, "),
    ],
)
def test_files_that_disagree_are_refused(tmp_path, section, first, second, columns, remedy):
    files = {"1.tsv": first, "2.tsv": second}
    selection = dict(zip(("source", "target"), columns, strict=True)) if columns else None
    with pytest.raises(UserError) as caught:
        survey(tmp_path, files, **section, columns=selection)
    assert f"`data.columns: {remedy}" in caught.value.remedy
    assert {"1.tsv", "2.tsv"} & {caught.value.where.rsplit("/")[-1]}


@pytest.mark.parametrize("section", [SPLITS, LIST])
@pytest.mark.parametrize(
    ("first", "second", "columns"),
    [
        ("tgt\tsrc\n" + SWAPPED, "src\ttgt\n" + PAIRS, None),
        ("src\ttgt\n" + PAIRS, PAIRS.replace("One", "Two"), None),
        ("fr\ten\n" + SWAPPED, "en\tfr\n" + PAIRS, {"source": "en", "target": "fr"}),
    ],
)
def test_files_that_agree_by_name(tmp_path, section, first, second, columns):
    summary = survey(tmp_path, {"1.tsv": first, "2.tsv": second}, **section, columns=columns)
    layouts = summary.problems.layouts
    assert all(layout.first["source"][:3] in ("One", "Two") for layout in layouts)
    assert sum(layout.rows for layout in layouts) == (400 if section is LIST else 600)


def test_parallel_files_may_have_both_directions(tmp_path):
    files = {"a.en": PAIRS.replace("\t", " "), "a.fr": SWAPPED.replace("\t", " ")}
    sides = {"source": ["a.en", "a.fr"], "target": ["a.fr", "a.en"]}
    assert sum(survey(tmp_path, files, train=sides).rows.values()) == 400


def test_first_row_by_feature(tmp_path):
    files = {
        "a.csv": "id,summary,article\n7,un,one\n8,deux,two\n"
        + "".join(f"{i},t{i},s{i}\n" for i in range(300))
    }
    summary = survey(tmp_path, files, train="a.csv")
    (row,) = summary.problems.first_rows()
    assert row["values"] == {"source": "one", "target": "un"}
    assert row["columns"] == {"source": "article", "target": "summary"}
    assert (row["line"], row["unused"]) == (2, ["id"])
    text = describe_first_row(row)
    assert all(part in text for part in ("a.csv:2", "article", "'one'", "summary", "'un'", "id"))
    assert list(summary.problems.first_row_notes())[-1].endswith(text)


def test_parallel_files_name_their_files(tmp_path):
    files = {"a.en": PAIRS.replace("\t", " "), "a.fr": SWAPPED.replace("\t", " ")}
    summary = survey(tmp_path, files, train={"source": "a.en", "target": "a.fr"})
    (row,) = summary.problems.first_rows()
    assert row["columns"] == {"source": "a.en", "target": "a.fr"}
    assert row["values"]["source"] == "One 0. Un 0."


@pytest.mark.parametrize(
    ("rows", "numbers", "constants"),
    [
        ([(i, f"One {i}.") for i in range(300)], ["source"], {}),
        ([(f"One {i}.", f"{i}.5") for i in range(300)], ["target"], {}),
        ([(f"One {i}.", "fra") for i in range(300)], [], {"target": "fra"}),
        ([(f"One {i}.", "7") for i in range(300)], ["target"], {"target": "7"}),
        ([(f"One {i}.", f"Un {i}.") for i in range(300)], [], {}),
        ([(f"One {i}.", "fra") for i in range(299)] + [("x", "y")], [], {}),
        ([(i, f"One {i}.") for i in range(299)] + [("x", "y")], [], {}),
    ],
)
def test_remarkable_columns_are_announced(tmp_path, rows, numbers, constants):
    half = len(rows) // 2
    parts = (rows[:half], rows[half:])
    files = {f"{i}.tsv": "".join(f"{a}\t{b}\n" for a, b in part) for i, part in enumerate(parts)}
    summary = survey(tmp_path, files, train=["0.tsv", "1.tsv"])
    (layout,) = summary.problems.layouts
    assert (layout.rows, layout.numbers, layout.constants) == (300, numbers, constants)
    subjects = {note.split()[0] for note in summary.notes}
    assert subjects == {*numbers, *constants}


@pytest.mark.parametrize(
    ("first", "rows", "is_announced"),
    [
        ("norsk\tengelsk", "One is number {i} here.\tUn est numéro {i} ici.\n", True),
        ("Thanks.\tMerci.", "One is number {i} here.\tUn est numéro {i} ici.\n", False),
        ("abc\tdef", "w{i}\tv{i}\n", False),
    ],
)
def test_a_first_row_that_may_be_a_header(tmp_path, first, rows, is_announced):
    text = f"{first}\n" + "".join(rows.format(i=i) for i in range(300))
    summary = survey(tmp_path, {"a.tsv": text}, train="a.tsv")
    assert sum(summary.rows.values()) == 301
    assert any("data.header" in note for note in summary.notes) == is_announced


def test_few_rows_are_not_remarkable(tmp_path):
    layout = Layout("a.tsv", {"source": "1"}, rows=19, numbers=["source"], first={"source": "1"})
    assert not list(layout.warnings())
    assert list(Layout(**{**vars(layout), "rows": 20}).warnings())


def test_layouts_are_bounded():
    layouts = []
    for i in range(500):
        merge_layouts(layouts, [Layout(f"{i}.tsv", {"source": f"text{i}"}, rows=1)])
    assert 1 < len(layouts) < 100
    merge_layouts(layouts, [Layout("again.tsv", {"source": "text0"}, rows=2)])
    assert (layouts[0].file, layouts[0].rows) == ("0.tsv", 3)
