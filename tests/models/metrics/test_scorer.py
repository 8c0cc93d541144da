import dataclasses
import math

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

from regard.models.metrics import METRICS, MetricOptions, Rows, Scorer
from regard.models.metrics.base import Statistics
from tests.models.metrics.test_significance import OPTIONS, TEXTS, WORSE, rows_for

SEVERAL = Rows(
    TEXTS.hypotheses,
    [[*references, "and one more"][: 1 + at % 2] for at, references in enumerate(TEXTS.references)],
)
PARTS = [[0], [3, 1, 7], list(range(1, 8, 2))]


def same(one, other):
    return one == other or (math.isnan(one) and math.isnan(other))


@pytest.mark.parametrize("name", METRICS)
def test_subsets_score_bit_for_bit_like_their_rows_alone(name):
    spec, rows = METRICS[name], rows_for(name)
    scorer = Scorer(spec, rows, OPTIONS)
    metric = scorer.metric(name)
    result = spec.compute(rows, OPTIONS)
    assert (metric.value, metric.signature) == (result.corpus_value(), result.signature)
    for indices in ([at for at in part if at < len(scorer)] for part in PARTS):
        expected = spec.compute(rows.take(indices), OPTIONS).corpus_value()
        assert same(scorer.subset_value(indices), expected)
        assert same(scorer.take(indices).value, expected)


@pytest.mark.parametrize("rows", [TEXTS, SEVERAL], ids=["one reference", "several"])
@pytest.mark.parametrize(
    ("name", "metric"), [("bleu", BLEU()), ("chrf", CHRF()), ("ter", TER(case_sensitive=True))]
)
def test_sums_equal_sacrebleu_bit_for_bit(name, metric, rows):
    scorer = Scorer(METRICS[name], rows, MetricOptions())
    for indices in (range(len(scorer)), *PARTS):
        part = rows.take(list(indices))
        streams = [[row[0] for row in part.references]]
        if any(len(row) > 1 for row in part.references):
            streams.append([row[1] if len(row) > 1 else None for row in part.references])
        score = metric.corpus_score(part.hypotheses, streams)
        assert scorer.subset_value(indices) == score.score
    whole = scorer.metric(name)
    assert whole.value == scorer.value
    assert whole.signature.startswith("nrefs:var|" if rows is SEVERAL else "nrefs:1|")


@pytest.mark.parametrize("whole", [True, False])
def test_sums_by_index_and_by_mask(whole):
    draw = np.random.default_rng(2)
    table = draw.integers(0, 9, (20, 3)).astype(float) + (0.0 if whole else 0.1)
    statistics = Statistics("", table, lambda total: float(total[0]))
    indices = np.array([3, 3, 0, 7])
    assert (
        statistics.sum_rows(indices).tolist()
        == (table[3] + table[3] + table[0] + table[7]).tolist()
    )
    mask = draw.integers(0, 2, 20, dtype=bool)
    assert statistics.sum_rows(mask).tolist() == pytest.approx(sum(table[mask]).tolist())
    assert statistics.corpus_value() == pytest.approx(sum(table[:, 0]))


def test_every_row_is_read_once():
    read = []

    def compute(rows, options):
        read.append(len(rows.hypotheses))
        return METRICS["chrf"].compute(rows, options)

    scorer = Scorer(dataclasses.replace(METRICS["chrf"], compute=compute), TEXTS)
    scorer.metric("chrf")
    scorer.subset_value([1, 2])
    scorer.take([3, 4]).sample_value(np.array([0, 0]))
    assert read == [len(TEXTS.hypotheses)]


@pytest.mark.parametrize("name", ["bleu", "spearman"])
def test_swapped_outputs(name):
    rows = rows_for(name)
    others = WORSE if name == "bleu" else Rows(rows.hypotheses[::-1], rows.references)
    one, other = (Scorer(METRICS[name], side, MetricOptions()) for side in (rows, others))
    is_own = np.arange(len(one)) % 3 == 0
    outputs = [
        a if keep else b
        for a, b, keep in zip(rows.hypotheses, others.hypotheses, is_own, strict=True)
    ]
    mixed = dataclasses.replace(rows, hypotheses=outputs)
    expected = Scorer(METRICS[name], mixed).value
    assert one.swapped_value(other, is_own) == pytest.approx(expected)
    assert one.swapped_value(other, np.ones(len(one), bool)) == pytest.approx(one.value)
