"""Columns are found by name; what can be read in several ways is refused."""

import itertools
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from regard.components.data.columns import MissingColumn, column_indices
from regard.components.data.read_problems import ReadProblems
from regard.components.data.row_reader import read_rows
from regard.components.data.sources import FileGroup
from regard.components.data.unreadable_file import UnreadableFile
from regard.models import tasks
from tests.components.corpora import (
    CAPTIONED,
    SCORED,
    TRANSLATION,
    corpus_of,
    first_error,
    read_group,
    table,
    unreadable,
)

SOURCES = (
    *("src", "source", "source_text", "src_text", "input", "inputs", "text", "article", "document"),
    *("sentence1", "question", "Source", "SRC", "source-text", "Source\u00a0Text", "sourceText"),
    *("input_text", "inputText", "doc", "documents", "original", "query", "prompt", "dialogue"),
    *("passage", "context", "content", "body", "story", "text1", "source_sentence", "src_sent"),
    *("premise", "instruction", "en", "src_en", "source.en", "data.source", "\ufeffsource"),
    *("'source'", "English"),
)
TARGETS = (
    *("tgt", "trg", "target", "target_text", "tgt_text", "output", "outputs", "summary"),
    *("headline", "highlights", "caption", "label", "answer", "Target", "TGT", "target-text"),
    *("Target\u00a0Text", "targetText", "output_text", "outputText", "summaries", "highlight"),
    *("headlines", "translation", "translations", "translated", "response", "completion", "tldr"),
    *("reference", "references", "text2", "target_sentence", "tgt_sent", "hypothesis"),
    *("sentence2", "simplified", "tgt_fr", "target.fr", "data.target", "target_German"),
)
SIMILARITY = tuple(tasks.describe("similarity").features)
SPAN = tuple(tasks.describe("span").features)
IMAGES = tuple(tasks.describe("captioning").features)
POINTER = tuple(tasks.describe("pointer").features)


def read_names(names, features=TRANSLATION, **section):
    """The column of each feature by its name, or the error."""
    corpus = corpus_of(None, features, train="a.tsv", **section)
    return names_read(corpus, names)


def names_read(corpus, names):
    indices = column_indices(corpus, "a.tsv", [name.strip("\ufeff'") for name in names], 1)
    return [None if index is None else names[index] for index in indices]


def test_all_pairs_of_names_in_both_orders():
    assert len(SOURCES) >= 40 <= len(TARGETS)
    corpus = corpus_of(None, TRANSLATION, train="a.tsv")
    for source, target in itertools.product(SOURCES, TARGETS):
        for names in ([source, target], [target, source], ["id", target, "url", source]):
            assert names_read(corpus, names) == [source, target], names


SPELLINGS = (
    *("{} [de]", "{} – German", "#{}", "# {}", "<{}>", "{}*", "{}|de", "{},de", "{}=de", "{} (de)"),
    *("\u00a0{}\u200b", "[{}]", '"{}"', "{}:", "{}_de", "{} / German", "${}", "@{}"),
)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_names_with_signs_are_a_header(single, spelling):
    names_of_languages = [("Ziel", "Quelle"), ("Texte cible", "Texte source"), ("译文", "原文")]
    for names in (
        ("target", "source"),
        ("tgt", "src"),
        ("summary", "article"),
        *names_of_languages,
    ):
        header = "\t".join(map(spelling.format, names))
        rows, _ = read_group(single("tsv", f"{header}\nun mot\tone word\n"))
        assert rows == [(2, "one word", "un mot")], header


@pytest.mark.parametrize("row", ["Text!\tTexte!", "(Music)\t(Musique)", "Text?\tText?", "…\t?"])
def test_short_texts_with_signs_are_a_row(single, row):
    assert len(read_group(single("tsv", f"{row}\nun mot\tone word\n"))[0]) == 2


def test_columns_of_languages_do_not_take_the_place_of_texts():
    names = ["src_lang", "tgt_lang", "src", "tgt"]
    assert read_names(names) == ["src", "tgt"]
    names = ["source_language", "target_language", "source_sentence", "target_sentence"]
    assert read_names(names) == names[2:]
    with pytest.raises(UnreadableFile):
        read_names(["src_lang", "tgt_lang", "sentence", "caption"])


@pytest.mark.parametrize(
    "header", ["source,target,,", "source,target,note,note", ",source,target,"]
)
def test_names_beside_empty_and_repeated_ones(single, header):
    index = header.split(",").index("source")
    row = ["x"] * 4
    row[index : index + 2] = "one word", "un mot"
    text = f"{header}\n{','.join(row)}\n"
    for columns in (None, {"source": index + 1, "target": index + 2}):
        section = {"columns": columns} if columns else {}
        assert read_group(single("csv", text), **section)[0] == [(2, "one word", "un mot")]


@pytest.mark.parametrize("columns", [None, {"source": "source", "target": "target"}])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_name_that_occurs_twice_is_refused(single, tmp_path, kind, columns):
    group = single("csv", "source,target,target\none,un,eins\n")
    if kind == "parquet":
        table = pa.Table.from_arrays([pa.array(["a"])] * 3, ["source", "target", "target"])
        pq.write_table(table, tmp_path / "a.parquet")
        group = FileGroup("train", kind, (str(tmp_path / "a.parquet"),))
    section = {"columns": columns} if columns else {}
    error = unreadable(group, **section)
    assert "'target'" in error.problem.text
    if kind == "csv":
        section = {"header": True, "columns": {"source": 1, "target": 3}}
        assert read_group(group, **section)[0] == [(2, "one", "eins")]


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl", "parquet", "arrow"])
@pytest.mark.parametrize("names", [("tgt", "src"), ("summary", "article"), ("Output", "in_put")])
def test_formats_share_the_rule(tmp_path, kind, names):
    path = tmp_path / f"a.{kind}"
    rows = [dict(zip(names, ("un", "one"), strict=True))] * 2
    if kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif kind == "arrow":
        content = pa.Table.from_pylist(rows)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, content.schema) as writer:
            writer.write_table(content)
    else:
        sign = {"tsv": "\t", "csv": ","}[kind]
        path.write_text(f"{sign.join(names)}\nun{sign}one\nun{sign}one\n")
    read, _ = read_group(FileGroup("train", kind, (str(path),)))
    assert [row[1:] for row in read] == [("one", "un")] * 2


LANGUAGES = ["en", "fr", "de", "zh-CN", "pt_BR", "EN", "English", "German", "eng", "deu_Latn"]


@pytest.mark.parametrize("names", itertools.permutations(LANGUAGES, 2))
def test_languages_do_not_show_the_direction(names):
    from regard.components.data.column_names import language_of

    if len(set(map(language_of, names))) == 2:
        with pytest.raises(UnreadableFile) as caught:
            read_names(names)
        one, other = names
        assert f"{{source: {one}, target: {other}}}" in caught.value.remedy
        assert f"{{source: {other}, target: {one}}}" in caught.value.remedy


def test_languages_of_the_configuration():
    for languages in ({"source": "en", "target": "fr"}, {"source": "en"}, {"target": "fr"}):
        section = {"checks": {"language": {"languages": languages}}}
        for names in (["en", "fr"], ["fr", "en"], ["fr-FR", "en"], ["French", "id", "English"]):
            source = next(name for name in names if name.lower().startswith("en"))
            assert read_names(names, **section)[0] == source


@pytest.mark.parametrize(
    ("features", "names", "expected"),
    [
        (SIMILARITY, ["label", "sentence2", "sentence1"], ["sentence1", "sentence2", "label"]),
        (
            SIMILARITY,
            ["relatedness_score", "sentence_B", "sentence_A"],
            ["sentence_A", "sentence_B", "relatedness_score"],
        ),
        (SIMILARITY, ["is_duplicate", "question1", "question2"], [1, 2, 0]),
        (SIMILARITY, ["hypothesis", "premise", "gold_label"], [1, 0, 2]),
        (IMAGES, ["caption", "image_path"], [1, 0, None]),
        (IMAGES, ["text", "id", "file_name"], [2, 0, None]),
        (SPAN, ["question", "id", "context", "answers.text", "answers.answer_start"], None),
        (POINTER, ["tour", "cities"], [1, 0]),
        (TRANSLATION, ["id", "summary", "document"], [2, 1]),
        (TRANSLATION, ["highlights", "article", "id"], [1, 0]),
        (TRANSLATION, ["title", "text"], [1, 0]),
        (TRANSLATION, ["title", "text", "summary"], [1, 2]),
        (TRANSLATION, ["fr", "src"], [1, 0]),
        (TRANSLATION, ["target", "source", "text", "summary"], [1, 0]),
    ],
)
def test_names_of_every_task(features, names, expected):
    read = read_names(names, features)
    if features is SPAN:
        assert read[:4] == ["context", "question", "answers.text", "answers.answer_start"]
    elif features is IMAGES and expected == [2, 0, None]:
        assert read[:2] == ["file_name", "text"]
    else:
        expected = [names[i] if isinstance(i, int) else i for i in expected]
        assert read == expected


@pytest.mark.parametrize(
    "names",
    [
        ["src", "input", "tgt"],
        ["src", "tgt", "trg"],
        ["src", "en", "fr"],
        ["title", "abstract"],
        ["text_en", "text_fr"],
        ["norsk", "engelsk"],
        ["id", "summary"],
        ["no", "summary"],
        ["source", "id"],
    ],
)
def test_unclear_names_are_refused_with_settings_that_can_be_read(names):
    with pytest.raises(UnreadableFile) as caught:
        read_names(names, header=True)
    settings = caught.value.remedy.split("`")[1::2]
    assert settings
    for setting in settings:
        columns = yaml.safe_load(setting.removeprefix("data.columns: "))
        assert set(columns.values()) <= set(names)
        assert read_names(names, columns=columns) == [columns["source"], columns["target"]]


@pytest.mark.parametrize("name", ["no", "yes", "on", "null", "1.5", "y", "~", "a: b", "0"])
def test_settings_quote_what_is_no_text_in_yaml(name):
    with pytest.raises(UnreadableFile) as caught:
        read_names([name, "target"], header=True)
    setting = caught.value.remedy.split("`")[1]
    assert yaml.safe_load(setting.removeprefix("data.columns: "))["source"] == name


def test_chosen_names_in_other_spellings(single):
    columns = {"source": "source_text", "target": "Target Text"}
    group = single("csv", "\ufeffTARGET-TEXT, Source Text \nun,one\n")
    assert read_group(group, columns=columns)[0] == [(2, "one", "un")]
    group = single("csv", "target_text,Target-Text,source_text\nun,x,one\n")
    unreadable(group, columns=columns)  # two columns, neither of which has exactly this name
    error = unreadable(group, columns={"source": "source_text", "target": "tgt"})
    assert isinstance(error, MissingColumn)
    assert error.feature == "target"


@pytest.mark.parametrize(
    ("rows", "fit"),
    [
        ([(1000 + i, f"One {i}.", 5000 + i, f"Un {i}.") for i in range(30)], "2, target: 4"),
        ([("eng", "fra", f"One {i}.", f"Un {i}.") for i in range(30)], "3, target: 4"),
        ([(f"One {i}.", f"Un {i}.", f"CC-BY {i}") for i in range(30)], "1, target: 2"),
    ],
)
def test_columns_without_names_are_not_dropped(single, rows, fit):
    group = single("tsv", table(*rows))
    error = unreadable(group)
    assert f"{len(rows[0])} columns" in error.message
    setting = error.remedy.split("`")[1]
    assert setting == f"data.columns: {{source: {fit}}}"
    columns = yaml.safe_load(setting)["data.columns"]
    read, _ = read_group(group, columns=columns)
    assert read[0] == (1, rows[0][columns["source"] - 1], rows[0][columns["target"] - 1])


def test_the_order_of_invalid_rows_is_named(single):
    rows = [(f"{i % 5}.5", f"One {i}.", f"Two {i}.") for i in range(40)]
    _, problems = read_group(single("tsv", table(*rows)), features=SIMILARITY)
    error = first_error(problems)
    assert "{first: 1, second: 2, score: 3}" in error.remedy
    assert "{first: 2, second: 3, score: 1}" in error.remedy
    assert "skip" not in error.remedy
    columns = {"first": 2, "second": 3, "score": 1}
    read, problems = read_group(single("tsv", table(*rows)), features=SIMILARITY, columns=columns)
    assert len(read) == 40
    # With a few wrong rows, the rows are wrong and not the columns.
    rows[3] = ("x", "One.", "Two.")
    _, problems = read_group(single("tsv", table(*rows)), features=SCORED)
    assert "skip" in first_error(problems).remedy


def test_a_table_of_invalid_lines(single):
    _, problems = read_group(single("tsv", b"\xff\tb\n" * 5))
    assert problems.skipped_rows == 5
    _, problems = read_group(single("jsonl", '{"x": 1, "y": 2}\n' * 1200))
    assert problems.skipped_rows == 1200


def test_keys_of_the_first_row_hold_for_all(single):
    rows = [{"source_text": "a", "tgt": "b"}, {"text": "d", "tgt": "e"}]
    group = single("jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    read, problems = read_group(group, bad_rows="skip")
    assert read == [(1, "a", "b")]
    assert problems.examples[0].line == 2


def test_captions_by_number_are_read_as_before(single):
    group = single("tsv", "1.jpg\tA dog\n1.jpg\tA cat\n")
    assert read_group(group, features=CAPTIONED)[0] == [(1, "1.jpg", ["A dog", "A cat"])]


def test_errors_can_be_pickled(single):
    import pickle

    error = unreadable(single("tsv", "a\nb\n"))
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.feature, str(copy)) == (error.feature, str(error))


def test_many_columns_are_read_quickly(tmp_path):
    names = [f"column {i}" for i in range(3000)] + ["tgt", "src"]
    assert read_names(names) == ["src", "tgt"]
    with pytest.raises(UnreadableFile):
        read_names([f"text_{'abcdefgh'[i % 8]}{i}" for i in range(3000)])
    corpus = corpus_of(tmp_path, TRANSLATION, train="a.tsv")
    path = tmp_path / "a.tsv"
    path.write_text("\t".join("x" * 5000) + "\n" + "\t".join("y" * 5000) + "\n")
    with pytest.raises(UnreadableFile):
        list(read_rows(FileGroup("train", "tsv", (str(path),)), corpus, ReadProblems()))
