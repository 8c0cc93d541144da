"""Which texts ``training.noise`` and ``evaluation.robustness`` can change."""

from pathlib import Path

import pytest

from tests.pipeline.config.refusals import compare, load_text, problems_of

_NOISE = "training: {noise: {upper_case: 0.1}}"


@pytest.mark.parametrize(
    ("noise", "rest", "wrong"),
    [
        (_NOISE, "", None),
        (_NOISE, "tokenizer: {type: char}", None),
        (_NOISE, "task: summarisation", None),
        ("training: {noise: {upper_case: 0.5, spaces: 0.5}}", "", None),
        ("training: {noise: {upper_case: 0.6, spaces: 0.5}}", "", ": the shares must add up to at"),
        ("training: {noise: {layout: azerty}}", "", ": no share is above 0"),
        ("training: {noise: {upper_case: 1.5}}", "", ".upper_case: "),
        ("training: {noise: {upper_case: 0.1, layout: dvorak}}", "", ".layout: "),
        (
            _NOISE,
            "tokenizer: {normalization: nfkc_cf}",
            ": upper_case and title_case change nothing",
        ),
        (
            "training: {noise: {upper_case: 0.1, spaces: 0.1}}",
            "tokenizer: {normalization: nfkc}",
            None,
        ),
        (_NOISE, "tokenizer: {type: word}", ": needs a bpe, unigram or char tokenizer"),
        (
            _NOISE,
            "tokenizer: {shared: true}\nmodel: {decoder: {pointer_generator: true}}",
            ": a pointer-generator copies the tokens",
        ),
        (_NOISE, "task: similarity", ": does not apply to the task similarity"),
        (_NOISE, "task: span", ": does not apply to the task span"),
        (_NOISE, "task: pointer", ": does not apply to the task pointer, which reads no text"),
        (
            "training: {noise: {upper_case: 0.1}, guided_alignment: {links: links}}",
            "",
            ": guided_alignment supervises the tokens of the tokenizer",
        ),
        ("training: {noise: {spaces: 0.1}, jit_compile: true}", "", ": changes the lengths"),
    ],
)
def test_only_sources_of_generated_texts_change(noise, rest, wrong, tmp_path: Path) -> None:
    model = "" if "model" in rest or "task" in rest else "model: {encoder: {type: transformer}, "
    model += "decoder: {type: transformer}}" if model else ""
    text = f"name: x\n{noise}\ndata: {{train: a.jsonl, extra: [links]}}\n{rest}\n{model}\n"
    if wrong:
        compare(problems_of(tmp_path, text), [f"2: training.noise{wrong}"])
    else:
        assert load_text(tmp_path, text).training.noise.probabilities()["upper_case"]


@pytest.mark.parametrize(
    ("section", "rest", "wrong"),
    [
        ("{}", "", None),
        ("{kinds: [upper_case], max_loss: {upper_case: 5.0}, metric: chrf}", "", None),
        ("{}", "task: similarity", None),
        ("{}", "task: span", None),
        ("{}", "task: pointer", ": does not apply to the task pointer"),
        ("{kinds: []}", "", ".kinds: names no kind"),
        ("{kinds: [spaces, spaces]}", "", ".kinds: a kind is given twice"),
        ("{kinds: [capitals]}", "", ".kinds.0: "),
        ("{kinds: [spaces], max_loss: {upper_case: 5.0}}", "", ".max_loss.upper_case: upper_case"),
        ("{max_loss: {upper_case: -1.0}}", "", ".max_loss.upper_case: "),
        ("{metric: ter}", "", ".metric: "),
    ],
)
def test_only_texts_are_changed(section, rest, wrong, tmp_path: Path) -> None:
    text = f"name: x\nevaluation: {{robustness: {section}}}\ndata: {{train: a.jsonl}}\n{rest}\n"
    if wrong:
        compare(problems_of(tmp_path, text), [f"2: evaluation.robustness{wrong}"])
    else:
        assert load_text(tmp_path, text).evaluation.robustness.measured_kinds


def test_a_model_that_refuses_long_sources_cannot_read_changed_ones(tmp_path: Path) -> None:
    text = "name: x\nevaluation: {robustness: {}}\nsearch: {long_source: refuse}\n"
    (problem,) = problems_of(tmp_path, f"{text}data: {{train: a.jsonl}}\n")
    assert problem.startswith("3: search.long_source: ")
