"""Tags of rows: the rules of ``data.tags``, their reading, and what counts as the same row."""

import json
from collections import Counter

import pytest

from regard.components.data.config_rules import validate_data
from regard.components.data.corpus_plan import CorpusPlan, read_split, survey_corpus
from regard.components.data.near_duplicates import similarity
from regard.components.data.row_reader import join_references
from regard.components.data.row_values import ComparedValues, value_lists
from regard.components.data.sources import Corpus, extra_features
from regard.components.settings.data import DataConfig
from regard.core.errors import UserError
from regard.core.features import Feature
from regard.core.kinds import TEXT
from tests.components.corpora import SUMMARISED, TRANSLATION, resolved, table, write_files

PAIR = {"source": ["a.en", "a.en"], "target": ["a.de", "a.fr"]}
FILES = {"train": PAIR, "tags": {"train": ["de", "fr"]}}
COLUMN = {"train": "a.tsv", "extra": ["lang"], "tags": {"column": "lang", "names": ["de", "fr"]}}


def features(section, own=TRANSLATION):
    return (*own, *extra_features(DataConfig.model_validate(section)))


def problems(**section):
    data = DataConfig.model_validate(section)
    problems = validate_data(data, features(section))
    return [(".".join(map(str, problem.path)), problem.message) for problem in problems]


def plan_of(root, section, own=TRANSLATION):
    return CorpusPlan(resolved(root, features(section, own), **section))


def rows_of(root, section, split="train"):
    return [tuple(row[1]) for _, row in read_split(plan_of(root, section), split)]


@pytest.mark.parametrize(
    "section",
    [
        FILES,
        COLUMN,
        {**FILES, "tags": {"names": ["cs", "de", "fr"], "train": ["fr", "de"]}},
        {**FILES, "eval": PAIR, "test": {"source": "t.en", "target": "t.fr"}}
        | {"tags": {"train": ["de", "fr"], "eval": ["fr", "fr"], "test": ["fr"]}},
        {"train": ["a.tsv", "b.tsv"], "tags": {"train": ["formal", "informal"]}},
        {**COLUMN, "train": "a-{SPAN}.tsv", "columns": {"source": 1, "target": 2, "lang": 3}},
    ],
)
def test_valid_sections(section):
    assert problems(**section) == []


@pytest.mark.parametrize(
    ("tags", "changes", "key", "message"),
    [
        ({"train": ["de"]}, {}, "tags.train", "has 1 tags, but needs 2: one for each path of dat"),
        ({"train": ["de", "fr"]}, {"eval": PAIR, "test": PAIR}, "tags.eval", "has 0 tags, but ne"),
        ({"train": ["de", "fr"], "test": ["de"]}, {}, "tags.test", "has 1 tags, but needs 0: one"),
        (
            {"train": ["de", "fr"], "eval": ["de", "fr"], "test": ["de", "es"]},
            {"eval": PAIR, "test": PAIR},
            "tags.test",
            "'es' is no tag of the model. Choices: de, fr",
        ),
        ({"names": ["de"], "train": ["de", "fr"]}, {}, "tags.train", "'fr' is no tag of the model"),
        ({"column": "lang", "names": ["de"]}, {}, "tags.column", "is not a column of data.extra"),
        ({"column": "lang"}, {"extra": ["lang"]}, "tags.names", "must list the tags of the column"),
        (
            {"column": "lang", "names": ["de"], "train": ["de", "de"]},
            {"extra": ["lang"]},
            "tags.train",
            "has 2 tags, but needs 0: one for each path of data.train, none with data.tags.column",
        ),
        ({"train": ["de", "fr"]}, {"extra": ["tag"]}, "extra.0", "'tag' is reserved"),
        (
            {"train": ["de", "fr"]},
            {"train": ["a-{SPAN}.tsv", "b-{SPAN}.tsv"], "eval": None},
            "tags",
            "in a growing corpus, tags must come from a column",
        ),
    ],
)
def test_invalid_sections(tags, changes, key, message):
    first, *_ = problems(**{"train": PAIR, **changes, "tags": tags})
    assert first[0] == f"data.{key}"
    assert first[1].startswith(message)


@pytest.mark.parametrize("name", ["", "a b", "<de>", "-x", 5])
def test_names_of_tags_have_no_other_characters(name):
    with pytest.raises(ValueError, match=r"tags\.train\.0"):
        DataConfig.model_validate({"train": "a.tsv", "tags": {"train": [name]}})


def test_tags_of_files(tmp_path):
    write_files(tmp_path, {"a.en": "one\ntwo\n", "a.de": "eins\nzwei\n", "a.fr": "un\ndeux\n"})
    section = {**FILES, "split": {"eval": 0.01, "test": 0.01}}
    plan = plan_of(tmp_path, section)
    rows = [tuple(row[1]) for split in plan.splits for _, row in read_split(plan, split)]
    expected = [("one", "eins"), ("two", "zwei"), ("one", "un"), ("two", "deux")]
    assert rows == [
        (*row, tag) for row, tag in zip(expected, ["de", "de", "fr", "fr"], strict=True)
    ]
    assert [group.name for group in plan.groups["train"]] == ["a.en <de>", "a.en <fr>"]
    assert Corpus.from_json(json.loads(json.dumps(plan.corpus.to_json()))) == plan.corpus


def test_every_file_of_a_pattern_has_its_tag(tmp_path):
    write_files(tmp_path, {f"{name}.tsv": f"{name}\tx\n" for name in ("a1", "a2", "b")})
    section = {"train": ["a*.tsv", "b.tsv"], "tags": {"train": ["x", "y"]}}
    groups = plan_of(tmp_path, section).groups["train"]
    assert [group.name for group in groups] == ["a1.tsv <x>", "a2.tsv <x>", "b.tsv <y>"]


def test_tags_of_a_column(tmp_path):
    content = table(("source", "target", "lang"), ("one", "eins", "de"), ("one", "un", "fr"))
    write_files(tmp_path, {"a.tsv": content})
    section = {**COLUMN, **dict.fromkeys(("eval", "test"), "a.tsv")}
    assert rows_of(tmp_path, section) == [("one", "eins", "de"), ("one", "un", "fr")]


BAD = [
    (("one", "eins", "es"), "'es' is no tag of data.tags. Choices: de, fr"),
    (("one", "eins", ""), "'' is no tag of data.tags. Choices: de, fr"),
    (("write <de> here", "eins", "fr"), "a text contains <de>, which is a tag of data.tags"),
    (("one", "<fr>eins", "de"), "a text contains <fr>, which is a tag of data.tags"),
]


@pytest.mark.parametrize(("row", "message"), BAD)
def test_an_unknown_tag_and_a_tag_in_a_text_are_invalid_rows(tmp_path, row, message):
    write_files(tmp_path, {"a.tsv": table(*[("s", "t", "de")] * 20, row), "b.tsv": "s\tt\tde\n"})
    section = {**COLUMN, **dict.fromkeys(("eval", "test"), "b.tsv"), "header": False}
    with pytest.raises(UserError, match=r"a\.tsv:21") as caught:
        survey_corpus(plan_of(tmp_path, section))
    assert message in str(caught.value)
    summary = survey_corpus(plan_of(tmp_path, {**section, "bad_rows": "skip"}))
    assert summary.rows["train"] == 20
    assert summary.problems.skipped_rows == 1


def test_without_tags_such_a_text_is_an_ordinary_one(tmp_path):
    write_files(tmp_path, {"a.tsv": "write <de> here\teins\n"})
    section = dict.fromkeys(("train", "eval", "test"), "a.tsv")
    assert rows_of(tmp_path, section) == [("write <de> here", "eins")]


def test_a_source_is_in_one_split_with_all_of_its_tags(tmp_path):
    lines = [f"sentence {i}" for i in range(300)]
    text = "".join(f"{line}\n" for line in lines)
    write_files(tmp_path, {"a.en": text, "a.de": text.upper(), "a.fr": text.title()})
    section = {**FILES, "split": {"eval": 0.2, "test": 0.2}}
    splits = {split: rows_of(tmp_path, section, split) for split in ("train", "eval", "test")}
    for rows in splits.values():
        counts = Counter(source for source, _, _ in rows)
        assert len(counts) > 30
        assert set(counts.values()) == {2}


def compared(own=TRANSLATION):
    chosen = features(FILES, own)
    return ComparedValues(chosen), lambda *row: value_lists(chosen, row)


def test_rows_with_different_tags_are_not_the_same():
    values, row = compared()
    one, other = row("a taxi waits", "taxi", "de"), row("a taxi waits", "taxi", "fr")
    assert values.row_hash(one) == values.row_hash(row("a taxi waits", "taxi", "de"))
    for method in (values.row_hash, values.input_hash, values.input_text):
        assert method(one) != method(other)
    assert similarity(values.input_text(one), values.input_text(other)) == 0
    same_tag = values.input_text(row("a taxi waits!", "", "de"))
    assert similarity(values.input_text(one), same_tag) > 0.8
    assert values.input_text(row(" ", "taxi", "de")) == ""
    assert values.row_texts(one).sides == [["a taxi waits"], ["taxi"]]


def test_the_checks_count_and_drop_rows_with_the_same_tag_only(tmp_path):
    rows = [(f"the quick brown fox number {i} runs", f"fuchs {i}") for i in range(20)]
    rows = [(*row, tag) for row in rows for tag in ("de", "fr")]
    write_files(tmp_path, {"a.tsv": table(*rows, rows[0]), "b.tsv": table(rows[0])})
    checks = {name: {"action": "drop"} for name in ("duplicates", "overlap", "near_overlap")}
    checks["near_overlap"]["similarity"] = 0.99
    section = {**COLUMN, **dict.fromkeys(("eval", "test"), "b.tsv"), "header": False}
    section |= {"checks": checks, "bad_rows_limit": 0.5}
    remaining = rows_of(tmp_path, section)
    assert remaining == rows[1:]  # the row of eval, and its copy, but not its French one


def test_references_are_joined_by_tag():
    chosen = features(FILES, SUMMARISED)
    rows = [(i, ["s", [text], None, tag]) for i, (text, tag) in enumerate(["xa", "yb", "za"])]
    joined = list(join_references(rows, chosen))
    assert joined == [(0, ["s", ["x", "z"], None, "a"]), (1, ["s", ["y"], None, "b"])]


def test_features():
    assert extra_features(DataConfig.model_validate({**FILES, "extra": ["domain"]})) == (
        Feature("domain", TEXT, "extra"),
        Feature("tag", TEXT, "extra", tags=("de", "fr")),
    )
    section = {**COLUMN, "extra": ["links", "lang"]}
    assert extra_features(DataConfig.model_validate(section), "links") == (
        Feature("links", TEXT, "extra", links=True),
        Feature("lang", TEXT, "extra", tags=("de", "fr")),
    )
