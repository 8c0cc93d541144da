"""The section ``augmentation``, and what other sections say against it."""

import json

import pytest

from regard.pipeline.config.config import AUGMENTER, NODES
from tests.pipeline.config.refusals import compare, load_text, problems_of

DATA = "name: x\ndata: {train: a.tsv}\n"
TEXTS = "name: x\ndata: {train: a.tsv, monolingual: [b.txt]}\n"
TEACHER = "augmentation: {distillation: {teacher: deep@3}}\n"
FILTER = "augmentation: {filter: {forward: f@1, reverse: r@2, keep: 0.5}}\n"
BACK = "augmentation: {back_translation: {model: r@1}}\n"


def test_models_and_defaults(tmp_path):
    config = load_text(
        tmp_path,
        TEXTS + "augmentation: {filter: {forward: f@1, reverse: r@2}, distillation: {teacher: t@3},"
        " back_translation: {model: r@4, search: sampling}}\n",
    )
    assert config.augmentation.models() == {
        "filter.forward": "f@1",
        "filter.reverse": "r@2",
        "distillation.teacher": "t@3",
        "back_translation.model": "r@4",
    }
    assert config.augmentation.filter.keep == 0.8
    assert not config.augmentation.distillation.keep_original
    assert config.augmentation.back_translation.tag == "<bt>"
    assert config.data.monolingual == ("b.txt",)
    assert config.model_dump(mode="json")["data"]["monolingual"] == ["b.txt"]


def test_each_model_may_have_a_tag(tmp_path):
    filters = "filter: {forward: f@1, reverse: r@2, reverse_tag: de-en}"
    text = f"{TEXTS}augmentation: {{{filters}, distillation: {{teacher: t@3, teacher_tag: fr}}}}\n"
    assert load_text(tmp_path, text).augmentation.tags() == {
        "filter.forward": None,
        "filter.reverse": "de-en",
        "distillation.teacher": "fr",
    }
    back = load_text(tmp_path, TEXTS + BACK.replace("r@1", "r@1, model_tag: de-en"))
    assert back.augmentation.tags() == {"back_translation.model": "de-en"}
    assert back.augmentation.back_translation.tag == "<bt>"


def test_rows_with_tags_may_have_a_teacher(tmp_path):
    text = "name: x\ndata: {train: a.tsv, tags: {train: [de]}}\n" + TEACHER
    assert load_text(tmp_path, text).augmentation.tags() == {"distillation.teacher": None}


def test_the_node_is_there_only_if_it_is_configured(tmp_path):
    assert load_text(tmp_path, DATA).nodes == NODES
    nodes = load_text(tmp_path, DATA + TEACHER).nodes
    assert nodes == (*NODES[:4], AUGMENTER, *NODES[4:])
    assert load_text(tmp_path, DATA + TEACHER).search_nodes[4] == AUGMENTER


def test_the_tag_is_a_symbol_of_the_tokenizer(tmp_path):
    own = "tokenizer: {user_defined_symbols: [<x>]}\n"
    for section, expected in (("", ["<x>"]), (BACK, ["<x>", "<bt>"])):
        config = load_text(tmp_path, (TEXTS if section else DATA) + section + own)
        assert json.loads(config.tokenizer_json)["user_defined_symbols"] == expected
    text = TEXTS + BACK.replace("r@1", 'r@1, tag: "<x>"') + own
    assert json.loads(load_text(tmp_path, text).tokenizer_json)["user_defined_symbols"] == ["<x>"]
    untagged = load_text(tmp_path, TEXTS + BACK.replace("r@1", "r@1, tag: null"))
    assert untagged.tokenizer_json == untagged.section_json("tokenizer")
    task = "name: x\ntask: pointer\ndata: {train: a.jsonl}\n"
    assert load_text(tmp_path, task).tokenizer_json == "null"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DATA + "augmentation: {}\n", "3: augmentation: has no step; add filter"),
        (
            TEXTS + BACK.replace("r@1", "r@1, tag: </s>"),
            "3: augmentation.back_translation.tag: </s> is a built-in symbol; use another tag",
        ),
        (DATA + BACK, "3: augmentation.back_translation: needs texts; set data.monolingual"),
        (
            "name: x\ndata: {train: a.tsv, monolingual: [b], tags: {train: [de]}}\n" + BACK,
            "3: augmentation.back_translation: its texts have none of data.tags; remove one",
        ),
        (
            "name: x\ntask: similarity\ndata: {train: a.tsv}\n" + TEACHER,
            "4: augmentation: does not apply to the task similarity, only to tasks with pairs",
        ),
        (
            "name: x\ntask: captioning\ndata: {train: a.tsv}\n" + TEACHER,
            "4: augmentation: does not apply to the task captioning, only to tasks with pairs",
        ),
        (
            "name: x\ntask: summarisation\ndata: {train: a.jsonl}\n" + FILTER,
            "4: augmentation.filter: does not apply to the task summarisation, whose rows may ha",
        ),
        (
            "name: x\ntask: summarisation\ndata: {train: a.jsonl, monolingual: [b]}\n" + BACK,
            [
                "3: data.monolingual: does not apply to the task summarisation, whose rows may ha",
                "4: augmentation.back_translation: does not apply to the task summarisation, wh",
            ],
        ),
        (
            "name: x\ndata: {train: a.tsv, extra: [links]}\n"
            "training: {guided_alignment: {links: links}}\n" + TEACHER,
            "3: training.guided_alignment: its links are those of other words",
        ),
        (
            "name: x\ndata: {train: a.tsv, monolingual: ['s3://b/c.txt']}\n" + BACK,
            "2: data.monolingual.0: 's3://b/c.txt' is a URI; copy it to a local folder",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path, text, expected):
    compare(problems_of(tmp_path, text), expected)


@pytest.mark.parametrize(
    "section",
    [
        TEACHER.replace("deep@3", "deep"),
        FILTER.replace("0.5", "0.0"),
        FILTER.replace("0.5", "1.5"),
        BACK.replace("r@1", 'r@1, tag: "b t"'),
        BACK.replace("r@1", "r@1, search: greedy"),
        BACK.replace("r@1", "r@1, ratio: 0.0"),
        BACK.replace("r@1", "r@1, ratio: 1e18"),
        BACK.replace("r@1", 'r@1, model_tag: "<de>"'),
        TEACHER.replace("deep@3", 'deep@3, teacher_tag: ""'),
        FILTER.replace("r@2", "r@2, reverse_tag: [de]"),
    ],
)
def test_invalid_values_are_refused(tmp_path, section):
    text = (TEXTS if "back_translation" in section else DATA) + section
    (problem,) = problems_of(tmp_path, text)
    assert problem.startswith("3: augmentation.")


def test_texts_may_be_unused_for_a_comparison(tmp_path):
    """All models of a comparison have the same section ``data``."""
    assert load_text(tmp_path, TEXTS).nodes == NODES


def test_summarisation_can_be_distilled(tmp_path):
    text = "name: x\ntask: summarisation\ndata: {train: a.jsonl}\n"
    assert load_text(tmp_path, text + TEACHER).augmentation.distillation.teacher == "deep@3"
