"""Settings of ``data.protect`` that cannot work."""

from pathlib import Path

import pytest

from tests.pipeline.config.refusals import compare, load_text, problems_of

PAIR = "train: {source: a.en, target: a.de}"
CASES = {
    "{}": "2: data.protect: protects nothing; list kinds or patterns, or remove it",
    "{kinds: [url]}": "2: data.protect.kinds.0: ",
    "{patterns: ['']}": "2: data.protect.patterns.0: ",
    "{patterns: ['a*']}": "2: data.protect.patterns.0: matches the empty text",
    "{patterns: [x, 'b|']}": "2: data.protect.patterns.1: matches the empty text",
    "{patterns: ['\\b']}": "2: data.protect.patterns.0: matches the empty text",
    "{patterns: ['$']}": "2: data.protect.patterns.0: matches the empty text",
    "{patterns: ['(?=x)y']}": "2: data.protect.patterns.0: is no RE2 pattern: ",
    "{patterns: ['(a']}": "2: data.protect.patterns.0: is no RE2 pattern: ",
    "{patterns: ['(a{1000}){1000}']}": "2: data.protect.patterns.0: is no RE2 pattern: ",
    "{kinds: [urls], placement: attention}": "2: data.protect.placement: attention places markup",
    "{kinds: [urls], number_rules: [{pattern: x, replacement: y}]}": (
        "2: data.protect.number_rules: has no effect without numbers in kinds; remove it"
    ),
    "{kinds: [numbers], number_rules: [{pattern: '(,)', replacement: '\\2'}]}": (
        "2: data.protect.number_rules.0.replacement: refers to a group that the pattern"
    ),
}
OTHER_SECTIONS = {
    "tokenizer: {type: word}": "3: tokenizer.type: word makes a span and its punctuation one word",
    "tokenizer: {vocab_size: 80}": "3: tokenizer.vocab_size: must exceed 84, the number of",
    "training: {subword_sampling: {alpha: 0.1}}": "3: training.subword_sampling: splits tags",
}


@pytest.mark.parametrize(("protect", "expected"), CASES.items())
def test_section(protect: str, expected: str, tmp_path: Path) -> None:
    compare(problems_of(tmp_path, f"name: x\ndata: {{{PAIR}, protect: {protect}}}\n"), expected)


@pytest.mark.parametrize(("section", "expected"), OTHER_SECTIONS.items())
def test_other_sections(section: str, expected: str, tmp_path: Path) -> None:
    text = f"name: x\ndata: {{{PAIR}, protect: {{kinds: [urls]}}}}\n{section}\n"
    compare(problems_of(tmp_path, text), expected)


@pytest.mark.parametrize("task", ["captioning", "pointer", "similarity", "span"])
def test_other_tasks(task: str, tmp_path: Path) -> None:
    images = ", images: ." if task == "captioning" else ""
    text = f"name: x\ntask: {task}\ndata: {{train: a.jsonl{images}, protect: {{kinds: [urls]}}}}\n"
    compare(problems_of(tmp_path, text), f"3: data.protect: does not apply to the task {task}")


def test_copying(tmp_path: Path) -> None:
    text = (
        f"name: x\ntask: summarisation\ndata: {{{PAIR}, protect: {{kinds: [urls]}}}}\n"
        "model: {decoder: {pointer_generator: true}}\ntokenizer: {shared: true}\n"
    )
    expected = "4: model.decoder.pointer_generator: a copied token has no symbol in another row"
    compare(problems_of(tmp_path, text), expected)


def test_valid_patterns(tmp_path: Path) -> None:
    patterns = r"['\b[A-Z]{2}-[0-9]+\b', '(?i)(iso|din) ?[0-9]+', '§']"
    text = f"name: x\ndata: {{{PAIR}, protect: {{patterns: {patterns}}}}}\n"
    assert load_text(tmp_path, text).data.protect.pattern().count("|") == 3


LINKS = {
    ("{kinds: [urls]}", "{links: l}"): None,
    ("{kinds: [urls, markup], placement: attention}", "{links: l}"): None,
    ("{kinds: [urls, markup]}", "{links: l}"): "3: training.guided_alignment: tags would be words",
    ("{kinds: [urls]}", "{links: l, unit: character}"): (
        "3: training.guided_alignment.unit: a span is one character"
    ),
}


@pytest.mark.parametrize(("sections", "expected"), LINKS.items())
def test_links_count_the_words_of_the_model(
    sections: tuple[str, str], expected: str | None, tmp_path: Path
) -> None:
    protect, guidance = sections
    text = f"name: x\ndata: {{train: a.jsonl, extra: [l], protect: {protect}}}\n"
    text += f"training: {{guided_alignment: {guidance}}}\n"
    if expected is None:
        assert load_text(tmp_path, text).training.guided_alignment.links == "l"
    else:
        compare(problems_of(tmp_path, text), expected)


def test_gold_alignments_count_the_words_of_the_model(tmp_path: Path) -> None:
    text = (
        "name: x\ndata: {train: a.jsonl, extra: [l], protect: {kinds: [markup]}}\n"
        "evaluation: {metrics: [bleu, aer], alignment: {gold: l}}\n"
    )
    compare(problems_of(tmp_path, text), "3: evaluation.alignment: tags would be words")
