from pathlib import Path

import pytest

from tests.pipeline.config.refusals import compare, load_text, problems_of

HEAD = "name: x\ndata:\n  train: {source: a.en, target: a.de}\n"
SLICES = "patterns: {questions: {feature: source, matches: a}}"

# The text starts in line 4.
CASES = {
    "evaluation: {slices: {by: [domian], patterns: {x: {feature: sorce, matches: a}}}}": [
        "4: evaluation.slices.by.0: 'domian' is not a text feature",
        "4: evaluation.slices.patterns.x.feature: 'sorce' is not a text feature. Did you mean",
    ],
    "evaluation: {slices: {by: [source, source]}}": (
        "4: evaluation.slices.by.1: 'source' is given twice"
    ),
    f"evaluation: {{slices: {{{SLICES}, thresholds: {{domain=news: {{bleu: 20}}}}}}}}": (
        "4: evaluation.slices.thresholds.domain=news: there is no slice 'domain=news'. "
        "Choices: "
        "pattern, length, oov, target_overlap; evaluation.slices.by adds features"
    ),
    f"evaluation: {{slices: {{{SLICES}, thresholds: {{pattern=question: {{bleu: 20}}}}}}}}": (
        "4: evaluation.slices.thresholds.pattern=question: there is no slice "
        "'pattern=question'. "
        "Did you mean pattern=questions? Choices: pattern=questions"
    ),
    (
        "evaluation:\n  production:\n    slices: [length=10-20, length=31+, oov=0.2+, oov, "
        "target_overlap=o]"
    ): [
        "6: evaluation.production.slices.0: there is no slice 'length=10-20'. Did you mean "
        "length=11-20? Choices: length=0-10, length=11-20, length=21-30, length=31+",
        "6: evaluation.production.slices.2: there is no slice 'oov=0.2+'. Did you mean "
        "oov=0.1+? Choices: oov=0, oov=0-0.1, oov=0.1+",
        "6: evaluation.production.slices.4: there is no slice 'target_overlap=o'. Did you mean "
        "target_overlap=no? Choices: target_overlap=no, target_overlap=yes",
    ],
    (
        "evaluation:\n  slices:\n    oov: null\n    target_overlap: false\n"
        "    thresholds: {oov: {bleu: 20}, target_overlap=no: {bleu: 20}}"
    ): [
        "8: evaluation.slices.thresholds.oov: there is no slice 'oov'. Choices: length; eval",
        "8: evaluation.slices.thresholds.target_overlap=no: there is no slice "
        "'target_overlap=no'. Choices: length; it needs "
        "data.checks.target_overlap and evaluation.slices.target_overlap",
    ],
    "  checks: {target_overlap: null}\nevaluation: {production: {slices: [target_overlap=no]}}": (
        "5: evaluation.production.slices.0: there is no slice 'target_overlap=no'. Choices"
    ),
    "evaluation:\n  slices: {thresholds: {oov=0: {exact_match: 97}}}": (
        "5: evaluation.slices.thresholds.oov=0.exact_match: exact_match ranges from 0 to 1, "
        "so 97 is not possible"
    ),
    "evaluation:\n  metrics: [bleu]\n  slices: {thresholds: {length: {chrf: 9}}}": (
        "6: evaluation.slices.thresholds.length.chrf: chrf is not computed; add it to"
    ),
    "evaluation:\n  slices: {thresholds: {length: {blue: 9}}}": (
        "5: evaluation.slices.thresholds.length.blue: 'blue' is not a choice. Did you mean bleu"
    ),
    "evaluation: {slices: {oov: [0.2, 0.1]}}": (
        "4: evaluation.slices.oov: must be a list of increasing bounds"
    ),
    "evaluation: {slices: {oov: []}}": (
        "4: evaluation.slices.oov: must be a list of increasing bounds, or null"
    ),
    "  extra: [target_overlap]\nevaluation: {slices: {by: [target_overlap]}}": (
        "5: evaluation.slices.by.0: target_overlap is a built-in kind of slices"
    ),
    "  extra: [oov]\nevaluation: {slices: {by: [oov]}}": (
        "5: evaluation.slices.by.0: oov is a built-in kind of slices; rename"
    ),
}


@pytest.mark.parametrize(("text", "expected"), CASES.items())
def test_invalid_slices(text, expected, tmp_path):
    head = HEAD.replace("{source: a.en, target: a.de}", "a.jsonl") if "extra" in text else HEAD
    compare(problems_of(tmp_path, f"{head}{text}\n"), expected)


def test_tasks_without_text_have_no_slices_by_unknown_words(tmp_path: Path) -> None:
    text = "name: x\ntask: pointer\ndata: {train: a.jsonl}\nevaluation:\n  slices: "
    problems = problems_of(tmp_path, f"{text}{{thresholds: {{oov: {{exact_match: 0.5}}}}}}\n")
    compare(
        problems, ["5: evaluation.slices.thresholds.oov: there is no slice 'oov'. Choices: length"]
    )


def test_images_have_no_slices_by_length(tmp_path: Path) -> None:
    text = "name: x\ntask: captioning\ndata: {train: a.jsonl}\nevaluation:\n"
    problems = problems_of(tmp_path, f"{text}  production: {{slices: [length]}}\n")
    message = (
        "there is no slice 'length'. Choices: target_overlap; evaluation.slices.by adds features"
    )
    compare(problems, [f"5: evaluation.production.slices.0: {message}"])


def test_values_of_features_are_accepted(tmp_path: Path) -> None:
    head = HEAD.replace("{source: a.en, target: a.de}", "a.jsonl")
    text = """  extra: [domain]
evaluation:
  production: {slices: [domain, length=31+, oov=0, file]}
  slices:
    by: [domain, file]
    thresholds:
      domain=news: {bleu: 25.0}
      domain: {chrf: 10}
      length: {exact_match: 0.01}
"""
    evaluation = load_text(tmp_path, head + text).evaluation
    assert evaluation.slices.thresholds["domain=news"] == {"bleu": 25.0}
    assert evaluation.production.slices == ("domain", "length=31+", "oov=0", "file")
