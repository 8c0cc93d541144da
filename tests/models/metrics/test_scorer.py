from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

from models.metrics import METRICS, Rows, Scorer
from models.metrics.base import Statistics
from tests.models.metrics.test_sampling import OPTIONS, TEXTS, WORSE, rows_for

SEVERAL = Rows(
    TEXTS.hypotheses,
    [[*wanted, "and one more"][: 1 + at % 2] for at, wanted in enumerate(TEXTS.references)],
)
PARTS = [[0], [3, 1, 7], list(range(1, 8, 2))]


def same(one, other):
    return one == other or (math.isnan(one) and math.isnan(other))


@pytest.mark.parametrize("name", METRICS)
def test_parts_are_to_the_last_bit_what_their_rows_alone_are(name):
    kind, rows = METRICS[name], rows_for(name)
    scorer = Scorer(kind, rows, OPTIONS)
    metric = scorer.metric(name)
    assert (metric.value, metric.signature) == kind.function(rows, OPTIONS)
    for chosen in ([at for at in part if at < len(scorer)] for part in PARTS):
        alone = kind.function(rows.take(chosen), OPTIONS)[0]
        assert same(scorer.part(chosen), alone)
        assert same(scorer.take(chosen).value, alone)


@pytest.mark.parametrize("rows", [TEXTS, SEVERAL], ids=["one reference", "several"])
@pytest.mark.parametrize(
    ("name", "metric"), [("bleu", BLEU()), ("chrf", CHRF()), ("ter", TER(case_sensitive=True))]
)
def test_sums_are_to_the_last_bit_sacrebleus(name, metric, rows):
    scorer = Scorer(METRICS[name], rows, {})
    for chosen in (range(len(scorer)), *PARTS):
        part = rows.take(list(chosen))
        streams = [[row[0] for row in part.references]]
        if any(len(row) > 1 for row in part.references):
            streams.append([row[1] if len(row) > 1 else None for row in part.references])
        score = metric.corpus_score(part.hypotheses, streams)
        assert scorer.part(chosen) == score.score
    whole = scorer.metric(name)
    assert whole.value == scorer.value
    assert whole.signature.startswith("nrefs:var|" if rows is SEVERAL else "nrefs:1|")


@pytest.mark.parametrize("whole", [True, False])
def test_sums_of_places_and_masks(whole):
    draw = np.random.default_rng(2)
    table = draw.integers(0, 9, (20, 3)).astype(float) + (0.0 if whole else 0.1)
    found = Statistics(table, lambda total: float(total[0]))
    places = np.array([3, 3, 0, 7])
    assert found.total(places).tolist() == (table[3] + table[3] + table[0] + table[7]).tolist()
    mask = draw.integers(0, 2, 20, dtype=bool)
    assert found.total(mask).tolist() == pytest.approx(sum(table[mask]).tolist())
    assert found.whole() == pytest.approx(sum(table[:, 0]))


def test_rows_are_read_once():
    read = []

    def statistics(rows, options):
        read.append(len(rows.hypotheses))
        return METRICS["chrf"].statistics(rows, options)

    scorer = Scorer(dataclasses.replace(METRICS["chrf"], statistics=statistics), TEXTS, {})
    scorer.metric("chrf")
    scorer.part([1, 2])
    scorer.take([3, 4]).sample(np.array([0, 0]))
    assert read == [len(TEXTS.hypotheses)]


@pytest.mark.parametrize("name", ["bleu", "spearman"])
def test_models_change_places(name):
    rows = rows_for(name)
    others = WORSE if name == "bleu" else Rows(rows.hypotheses[::-1], rows.references)
    one, other = (Scorer(METRICS[name], side, {}) for side in (rows, others))
    mine = np.arange(len(one)) % 3 == 0
    answers = [
        a if keep else b
        for a, b, keep in zip(rows.hypotheses, others.hypotheses, mine, strict=True)
    ]
    mixed = METRICS[name].function(dataclasses.replace(rows, hypotheses=answers), {})[0]
    assert one.mixed(other, mine) == pytest.approx(mixed)
    assert one.mixed(other, np.ones(len(one), bool)) == pytest.approx(one.value)
