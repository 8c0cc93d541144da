from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config import load
from tests.pipeline.config.refusals import compare, problems_of

HEAD = "name: x\ndata:\n  train: {source: a.en, target: a.de}\n"
SLICES = "patterns: {questions: {feature: source, matches: a}}"

# These begin in line 4.
CASES = {
    "slices by what there is not": (
        "evaluation: {slices: {by: [domian], patterns: {x: {feature: sorce, matches: a}}}}",
        [
            "4: evaluation.slices.by.0: 'domian' is no feature of text",
            "4: evaluation.slices.patterns.x.feature: 'sorce' is no feature of text; did you mean",
        ],
    ),
    "slices twice": (
        "evaluation: {slices: {by: [source, source]}}",
        ["4: evaluation.slices.by.1: 'source' is given twice"],
    ),
    "a slice of no kind that there is": (
        f"evaluation: {{slices: {{{SLICES}, floors: {{domain=news: {{bleu: 20}}}}}}}}",
        [
            "4: evaluation.slices.floors.domain=news: there is no slice 'domain=news'; choices: "
            "pattern, length, oov, seen; evaluation.slices.by adds features"
        ],
    ),
    "a pattern that there is not": (
        f"evaluation: {{slices: {{{SLICES}, floors: {{pattern=question: {{bleu: 20}}}}}}}}",
        [
            "4: evaluation.slices.floors.pattern=question: there is no slice 'pattern=question'; "
            "did you mean pattern=questions? choices: pattern=questions"
        ],
    ),
    "bounds that there are not": (
        "evaluation:\n  production:\n    slices: [length=10-20, length=31+, oov=0.2+, oov, seen=o]",
        [
            "6: evaluation.production.slices.0: there is no slice 'length=10-20'; did you mean "
            "length=11-20? choices: length=0-10, length=11-20, length=21-30, length=31+",
            "6: evaluation.production.slices.2: there is no slice 'oov=0.2+'; did you mean "
            "oov=0.1+? choices: oov=0, oov=0-0.1, oov=0.1+",
            "6: evaluation.production.slices.4: there is no slice 'seen=o'; did you mean "
            "seen=no? choices: seen=no, seen=yes",
        ],
    ),
    "slices that are turned off": (
        "evaluation:\n  slices:\n    oov: null\n    seen: false\n"
        "    floors: {oov: {bleu: 20}, seen=no: {bleu: 20}}",
        [
            "8: evaluation.slices.floors.oov: there is no slice 'oov'; choices: length; eval",
            "8: evaluation.slices.floors.seen=no: there is no slice 'seen=no'; choices: length; "
            "data.checks.target_overlap and evaluation.slices.seen make those of references",
        ],
    ),
    "references that nobody looks for": (
        "  checks: {target_overlap: null}\nevaluation: {production: {slices: [seen=no]}}",
        ["5: evaluation.production.slices.0: there is no slice 'seen=no'; choices: length, oov; d"],
    ),
    "a floor of a slice out of range": (
        "evaluation:\n  slices: {floors: {oov=0: {exact_match: 97}}}",
        [
            "5: evaluation.slices.floors.oov=0.exact_match: exact_match goes from 0 to 1; "
            "97 was given"
        ],
    ),
    "a floor of a slice that is not computed": (
        "evaluation:\n  metrics: [bleu]\n  slices: {floors: {length: {chrf: 9}}}",
        ["6: evaluation.slices.floors.length.chrf: chrf is not computed; add it to"],
    ),
    "a floor of a slice of no metric": (
        "evaluation:\n  slices: {floors: {length: {blue: 9}}}",
        ["5: evaluation.slices.floors.length.blue: 'blue' is not a choice; did you mean bleu"],
    ),
    "falling shares": (
        "evaluation: {slices: {oov: [0.2, 0.1]}}",
        ["4: evaluation.slices.oov: the bounds must rise; [0.2, 0.1] was given"],
    ),
    "no shares": (
        "evaluation: {slices: {oov: []}}",
        ["4: evaluation.slices.oov: there is no bound; use null for no such slices"],
    ),
    "a column called like those of seen references": (
        "  extra: [seen]\nevaluation: {slices: {by: [seen]}}",
        ["5: evaluation.slices.by.0: other slices are called seen; give the column another name"],
    ),
    "a column called like other slices": (
        "  extra: [oov]\nevaluation: {slices: {by: [oov]}}",
        ["5: evaluation.slices.by.0: other slices are called oov; give the column another name"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_impossible(name: str, tmp_path: Path) -> None:
    text, expected = CASES[name]
    head = HEAD.replace("{source: a.en, target: a.de}", "a.jsonl") if "extra" in text else HEAD
    compare(problems_of(tmp_path, f"{head}{text}\n"), expected)


def test_without_text_there_are_no_unknown_words(tmp_path: Path) -> None:
    text = "name: x\ntask: pointer\ndata: {train: a.jsonl}\nevaluation:\n  slices: "
    found = problems_of(tmp_path, f"{text}{{floors: {{oov: {{exact_match: 0.5}}}}}}\n")
    compare(found, ["5: evaluation.slices.floors.oov: there is no slice 'oov'; choices: length"])


def test_images_have_no_length(tmp_path: Path) -> None:
    text = "name: x\ntask: captioning\ndata: {train: a.jsonl}\nevaluation:\n"
    found = problems_of(tmp_path, f"{text}  production: {{slices: [length]}}\n")
    message = "there is no slice 'length'; choices: seen; evaluation.slices.by adds features"
    compare(found, [f"5: evaluation.production.slices.0: {message}"])


def load_text(folder: Path, text: str):
    path = folder / "x.yaml"
    path.write_text(text)
    return load(path)


def test_values_of_a_feature_are_not_known_yet(tmp_path: Path) -> None:
    head = HEAD.replace("{source: a.en, target: a.de}", "a.jsonl")
    text = """  extra: [domain]
evaluation:
  production: {slices: [domain, length=31+, oov=0]}
  slices:
    by: [domain]
    floors:
      domain=news: {bleu: 25.0}
      domain: {chrf: 10}
      length: {exact_match: 0.01}
"""
    evaluation = load_text(tmp_path, head + text).evaluation
    assert evaluation.slices.floors["domain=news"] == {"bleu": 25.0}
    assert evaluation.production.slices == ("domain", "length=31+", "oov=0")
