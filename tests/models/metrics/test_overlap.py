import numpy as np
import pytest
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU

from regard.models import metrics
from regard.models.metrics import MetricOptions, Rows
from regard.models.metrics.overlap import _WordTokenizer

HYPOTHESES = ["A man rides a red bike .", "zwei Hunde laufen", "The end of it all, at last."]
REFERENCES = ["A man is riding a red bike.", "Zwei Hunde laufen", "The end of it all, at last."]
SEVERAL = [[REFERENCES[0], HYPOTHESES[0]], [REFERENCES[1]], ["The end."]]


def pairs(hypotheses, references) -> Rows:
    return Rows(hypotheses, [[reference] for reference in references])


def test_rows_may_differ_in_their_number_of_references():
    more, fewer = Rows(HYPOTHESES, SEVERAL), Rows(HYPOTHESES, [row[:1] for row in SEVERAL])
    names = ["bleu", "chrf", "ter", "bleu_1"]
    for one, other in zip(metrics.compute(names, more), metrics.compute(names, fewer), strict=True):
        assert one.signature.startswith("nrefs:var|")
        assert other.signature.startswith("nrefs:1|")
        assert (one.value > other.value) == one.higher_is_better


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_bleu_up_to_an_order_matches_the_sacrebleu_command(tmp_path, order):
    (metric,) = metrics.compute([f"bleu_{order}"], pairs(HYPOTHESES, REFERENCES))
    expected = BLEU(max_ngram_order=order, force=True).corpus_score(HYPOTHESES, [REFERENCES])
    assert metric.value == expected.score
    assert metric.signature.endswith(f"|order:{order}")
    assert metric.label == f"BLEU-{order}"


def test_ter_counts_edits_per_word():
    (metric,) = metrics.compute(["ter"], pairs(["a b c d x y"], ["a b"]))
    assert metric.value == pytest.approx(200.0)  # more than a hundred is possible
    assert not metric.higher_is_better
    (mixed,) = metrics.compute(["ter"], pairs(["A b"], ["a b"]))
    (lower,) = metrics.compute(["ter"], pairs(["A b"], ["a b"]), MetricOptions(lowercase=True))
    assert (mixed.value, lower.value) == (50.0, 0.0)
    assert "case:lc" in lower.signature


def test_ter_counts_characters_of_scripts_without_spaces():
    hypotheses = ["我昨天去了北京。", "今天天气很好。", "他在 2026 年来。"]
    rows = pairs(hypotheses, ["我昨天去了上海。", "今天天气很好。", "她在 2026 年来。"])
    zh, japanese, char, latin = (
        metrics.compute(["ter"], rows, MetricOptions(tokenize=name))[0]
        for name in ("zh", "ja-mecab", "char", "13a")
    )
    # 3 edits of 8 + 7 + 6 words with "2026", or of 24 characters.
    assert zh.value == japanese.value == pytest.approx(100 * 3 / 21)
    assert char.value == pytest.approx(100 * 3 / 24)
    assert latin.value > 2 * zh.value
    assert "asian:yes" in zh.signature
    assert len({zh.signature, char.signature, latin.signature}) == 3
    thai = metrics.compute(["ter"], pairs(["กขค"], ["กขง"]), MetricOptions(tokenize="char"))
    assert thai[0].value == pytest.approx(100 / 3)


def test_lowercase_changes_value_and_signature():
    rows = pairs(HYPOTHESES, REFERENCES)
    (mixed,) = metrics.compute(["bleu"], rows)
    (lower,) = metrics.compute(["bleu"], rows, MetricOptions(lowercase=True))
    assert lower.value > mixed.value
    assert "case:lc" in lower.signature


@pytest.mark.parametrize("tokenize", ["13a", "zh"])
def test_bleu_lc_is_bleu_of_lowercased_text(tokenize):
    texts = [[text.lower() for text in side] for side in (HYPOTHESES, REFERENCES)]
    options = MetricOptions(tokenize=tokenize)
    (expected,) = metrics.compute(["bleu"], pairs(*texts), options)
    cased, lower = metrics.compute(["bleu", "bleu_lc"], pairs(HYPOTHESES, REFERENCES), options)
    assert lower.value == expected.value > cased.value
    assert (lower.label, lower.name) == ("BLEU (lc)", "bleu_lc")
    assert f"case:lc|eff:no|tok:{tokenize}" in lower.signature


def test_the_tokenizer_option_changes_bleu():
    chinese = pairs(["我们是好朋友和好邻居"], ["我们是好朋友和好同事"])
    (words,) = metrics.compute(["bleu"], chinese)
    (characters,) = metrics.compute(["bleu"], chinese, MetricOptions(tokenize="zh"))
    assert characters.value > words.value
    assert "tok:zh" in characters.signature


def exact(hypotheses, references, **options):
    rows = Rows(hypotheses, references)
    (metric,) = metrics.compute(["exact_match"], rows, MetricOptions(**options))
    return metric


def test_exact_match_may_ignore_case():
    mixed, lower = exact(["ABC "], [["abc"]]), exact(["ABC "], [["abc"]], lowercase=True)
    assert (mixed.value, lower.value) == (0.0, 1.0)
    assert lower.signature == "nrefs:1|case:lc|norm:strip"


def test_exact_match_accepts_any_reference():
    metric = exact(["b", "x"], [["a", "b "], ["a"]])
    assert (metric.value, metric.signature) == (0.5, "nrefs:var|case:mixed|norm:strip")


@pytest.mark.parametrize("kind", [list, np.array])
def test_exact_match_of_positions(kind):
    metric = exact([kind([0, 2, 1]), kind([0, 1])], [[[0, 2, 1]], [[1, 0], [0, 1, 2]]])
    assert (metric.value, metric.signature) == (0.5, "nrefs:var")


def test_exact_match_of_numbers():
    assert exact([1.0, 2.0], [[1], [2.5]]).value == 0.5


ROUGE_VARIANTS = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}
ROUGE_HYPOTHESES = ["Police killed the gunman, at 10:30.", "the cat's mat"]
ROUGE_REFERENCES = [
    ["police ended the gunman", "The gunman was killed by police."],
    ["A cat's hat"],
]


@pytest.mark.parametrize("name", ROUGE_VARIANTS)
def test_english_rouge_scores_equal_those_of_the_package(name):
    (metric,) = metrics.compute([name], Rows(ROUGE_HYPOTHESES, ROUGE_REFERENCES))
    scorer = RougeScorer([ROUGE_VARIANTS[name]])
    expected = [
        max(
            scorer.score(reference, hypothesis)[ROUGE_VARIANTS[name]].fmeasure
            for reference in references
        )
        for hypothesis, references in zip(ROUGE_HYPOTHESES, ROUGE_REFERENCES, strict=True)
    ]
    assert metric.value == pytest.approx(100 * sum(expected) / 2)
    assert 0 < metric.value < 100
    assert metric.signature == "nrefs:var|case:lc|tok:words|stem:no|version:0.1.2"


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
def test_words_in_any_script(text, words):
    assert _WordTokenizer().tokenize(text) == words


def test_chinese_text_has_a_rouge_score():
    (metric,) = metrics.compute(["rouge_1"], Rows(["我们是好朋友"], [["我们是好同事"]]))
    assert metric.value == pytest.approx(100 * 4 / 6)


def test_rouge_of_empty_texts_is_zero():
    results = metrics.compute(list(ROUGE_VARIANTS), Rows(["", "…"], [["a word"], [""]]))
    assert [metric.value for metric in results] == [0.0, 0.0, 0.0]
