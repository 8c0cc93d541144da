"""Settings that cannot be combined with ``data.tags``; its own rules are in ``test_tags``."""

from pathlib import Path

import pytest

from tests.pipeline.config.refusals import compare, load_text, problems_of

PAIR = "{source: a.en, target: a.de}"
TAGS = "tags: {train: [de]}"
TAG_CASES = {
    f"data: {{train: {PAIR}, tags: {{train: [s]}}}}": (
        "2: data.tags: <s> is a built-in symbol; use another name"
    ),
    # A tokenizer with byte_fallback has this token already.
    f"data: {{train: {PAIR}, tags: {{train: ['0x41']}}}}": (
        "2: data.tags: <0x41> is a built-in symbol; use another name"
    ),
    f"data: {{train: {PAIR}, tags: {{train: [a b]}}}}": "2: data.tags.train.0: ",
    f"data: {{train: {PAIR}, tags: {{train: [de], temperature: 0.5}}}}": (
        "2: data.tags.temperature: must be greater than or equal to 1; 0.5 was given"
    ),
    f"data: {{train: {PAIR}, {TAGS}}}\ntokenizer: {{user_defined_symbols: [<de>]}}": (
        "3: tokenizer.user_defined_symbols: <de> is a tag of data.tags; remove it"
    ),
    f"data: {{train: {PAIR}, {TAGS}}}\ntokenizer: {{vocab_size: 6}}": (
        "3: tokenizer.vocab_size: must exceed 6, the number of special, user-defined and byte"
    ),
    f"data: {{train: {PAIR}, {TAGS}}}\ntraining: {{subword_sampling: {{alpha: 0.1}}}}": (
        "3: training.subword_sampling: splits tags and user-defined symbols of type unigram; rem"
    ),
    f"data: {{train: {PAIR}, {TAGS}}}\nserving: {{split_sentences: true}}": (
        "3: serving.split_sentences: only the first sentence of a text would have its tag; rem"
    ),
    f"data: {{train: a.tsv, extra: [links], {TAGS}}}\ntraining: "
    "{guided_alignment: {links: links}}": (
        "3: training.guided_alignment: the tag would be a word of the source, which the links "
        "do not count; remove it, or data.tags"
    ),
    f"data: {{train: a.tsv, extra: [links], {TAGS}}}\nevaluation: "
    "{metrics: [bleu, aer], alignment: {gold: links}}": (
        "3: evaluation.alignment: the tag would be a word of the source, which the links do not"
    ),
    f"data: {{train: a.tsv, {TAGS}}}\nevaluation: {{slices: {{by: [lang]}}}}": (
        "3: evaluation.slices.by.0: 'lang' is not a text feature. Choices: source, target, tag"
    ),
}


@pytest.mark.parametrize(("text", "expected"), TAG_CASES.items())
def test_tags(text: str, expected: str, tmp_path: Path) -> None:
    compare(problems_of(tmp_path, f"name: x\n{text}\n"), expected)


def test_a_tag_that_is_named_twice_is_one(tmp_path: Path) -> None:
    text = f"name: x\ndata: {{train: {PAIR}, tags: {{names: [de, fr, de], train: [de]}}}}\n"
    assert load_text(tmp_path, text).data.tag_names == ("de", "fr")


@pytest.mark.parametrize("task", ["captioning", "pointer", "similarity", "span", "summarisation"])
def test_tags_are_for_text_to_text_tasks(task: str, tmp_path: Path) -> None:
    images = ", images: ." if task == "captioning" else ""
    text = f"name: x\ntask: {task}\ndata: {{train: a.jsonl{images}, {TAGS}}}\n"
    text += "evaluation: {slices: {by: [tag], thresholds: {tag=de: {rouge_l: 1}}}}\n"
    if task == "summarisation":
        assert load_text(tmp_path, text).data.tag_names == ("de",)
    else:
        text = text[: text.index("evaluation")]
        expected = f"3: data.tags: does not apply to the task {task}, only to tasks with pairs"
        compare(problems_of(tmp_path, text), expected)
