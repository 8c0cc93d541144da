from __future__ import annotations

import pytest
from rouge_score.rouge_scorer import RougeScorer

from models import metrics
from models.metrics import Rows
from models.metrics.rouge import _Words

KINDS = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}
HYPOTHESES = ["Police killed the gunman, at 10:30.", "the cat's mat"]
REFERENCES = [["police ended the gunman", "The gunman was killed by police."], ["A cat's hat"]]


@pytest.mark.parametrize("name", KINDS)
def test_english_scores_as_with_the_package_alone(name):
    (metric,) = metrics.compute([name], Rows(HYPOTHESES, REFERENCES))
    scorer = RougeScorer([KINDS[name]])
    wanted = [
        max(scorer.score(reference, hypothesis)[KINDS[name]].fmeasure for reference in references)
        for hypothesis, references in zip(HYPOTHESES, REFERENCES, strict=True)
    ]
    assert metric.value == pytest.approx(100 * sum(wanted) / 2)
    assert 0 < metric.value < 100
    assert metric.signature == "nrefs:var|case:lc|tok:words|stem:no|version:0.1.2"


def test_a_known_value():
    """Lin 2004, section 3.1: S2 shares three of the four words in order, S3 two."""
    reference = ["police killed the gunman"]
    for hypothesis, shared in [("police kill the gunman", 3), ("the gunman kill police", 2)]:
        (metric,) = metrics.compute(["rouge_l"], Rows([hypothesis], [reference]))
        assert metric.value == pytest.approx(100 * shared / 4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Über 3 Straßen, déjà-vu!", ["über", "3", "straßen", "déjà", "vu"]),
        ("我们是 AB12", ["我", "们", "是", "ab12"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("snake_case", ["snake", "case"]),
        ("", []),
    ],
)
def test_words_of_any_script(text, words):
    assert _Words().tokenize(text) == words


def test_chinese_has_a_score():
    (metric,) = metrics.compute(["rouge_1"], Rows(["我们是好朋友"], [["我们是好同事"]]))
    assert metric.value == pytest.approx(100 * 4 / 6)


def test_nothing_scores_nothing():
    found = metrics.compute(list(KINDS), Rows(["", "…"], [["a word"], [""]]))
    assert [metric.value for metric in found] == [0.0, 0.0, 0.0]
