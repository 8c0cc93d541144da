"""The rows on which two models differ."""

import random

import pytest

from regard.components.evaluator import row_differences
from regard.components.evaluator.results import CANDIDATE, PRODUCTION
from regard.components.evaluator.row_differences import RowDifferences, compare_rows
from regard.components.evaluator.scoring import ModelScores
from regard.components.evaluator.slices import Slice
from regard.components.settings.evaluation import EvaluationConfig
from regard.models.metrics import Rows
from tests import fake_models
from tests.components.evaluator import evaluating

CONTRACT = {**fake_models.Reverser().contract(), "task": "translation"}
CONFIG = EvaluationConfig(metrics=("chrf", "bleu", "exact_match"), samples=0)
NAMES = ("Anna", "Marie", "Tom", "Omar", "Ines")
VERBS = ("kauft", "verkauft", "sieht", "sucht", "findet")
THINGS = ("Häuser am Meer", "alte Bücher", "rote Fahrräder aus Stahl", "Bilder von Bergen")


def compare(candidate, production, references, sources, slices=(), config=CONFIG):
    rows = {
        model: Rows(outputs, [[text] for text in references], {"source": sources})
        for model, outputs in ((CANDIDATE, candidate), (PRODUCTION, production))
    }
    scores = {model: ModelScores(outputs, config) for model, outputs in rows.items()}
    return compare_rows(rows, scores, slices, CONTRACT, config)


def make_rows(count):
    """Sources with names and numbers, references, and outputs that differ from them in a word."""
    random_numbers = random.Random(17)
    sources, references, outputs = [], [], []
    for row in range(count):
        name, number = random_numbers.choice(NAMES), random_numbers.randint(2, 99)
        verb, thing = random_numbers.choice(VERBS), random_numbers.choice(THINGS)
        sources.append(f"On day {row + 1} {name} trades {number} things with her friends.")
        references.append(f"Am Tag {row + 1} {verb} {name} mit Freunden {number} {thing}.")
        outputs.append(references[-1].replace(verb, random_numbers.choice(VERBS)))
    return sources, references, outputs


def test_planted_regressions_come_first():
    """Between two models that choose other words in half of the rows."""
    sources, references, production = make_rows(1000)
    candidate = list(production)
    for row in range(0, 1000, 2):
        for verb in VERBS:
            candidate[row] = candidate[row].replace(verb, VERBS[row % len(VERBS)])
    planted = set(range(3, 1000, 50))
    for place, row in enumerate(sorted(planted)):
        name = next(name for name in NAMES if name in candidate[row])
        number = candidate[row].split("Freunden ")[1].split()[0]
        candidate[row] = (
            candidate[row].replace(f" {number} ", f" {int(number) + 1} "),
            candidate[row].replace(name, "Paul"),
            candidate[row].replace(" mit Freunden", "").replace(f" {number}", "", 1),
        )[place % 3]
    assert len(planted) == 20
    differences = compare(candidate, production, references, sources)
    assert {row.row for row in differences.rows[:20]} == planted
    assert differences.total == 1000
    assert differences.different == len(differences.rows) > 400


def test_an_omission_comes_before_words_in_another_order():
    references = [
        "Menschen gehen auf einer Straße mit einem Straßenhändler.",
        "Zwei Personen fahren Motorrad gemeinsam mit vielen anderen.",
    ]
    sources = ["People walk with a vendor.", "Two people ride along with many others."]
    candidate = [
        "Leute gehen mit einem Verkäufer die Straße entlang.",
        "Zwei Personen fahren Motorrad.",
    ]
    first, second = compare(candidate, references, references, sources).rows
    assert (first.row, second.row) == (1, 0)
    assert first.errors == (["omission"], [])
    assert second.errors == (["omission", "addition"], [])
    assert first.values["chrf"][0] > second.values["chrf"][0]


def test_values_errors_and_slices_of_a_row():
    references = ["Tom hat 3 Hunde.", "Ein Hund.", "Alles gut."]
    sources = ["Tom has 3 dogs.", "A dog.", "All well."]
    candidate = ["Tom hat 4 Hunde.", "Ein Hund.", "Alles gut."]
    production = ["Tom hat 3 Hunde.", "Ein Hund.", "Alles schlecht."]
    slices = [Slice("pattern", "numbers", [0]), Slice("pattern", "others", [1, 2])]
    differences = compare(candidate, production, references, sources, slices)
    assert differences.metric == "chrf"
    assert differences.slices == ["pattern=numbers", "pattern=others"]
    assert [row.row for row in differences.rows] == [0, 2]  # the loss comes before the gain
    first, second = differences.rows
    assert first.errors == (["number"], [])
    assert first.slices == [0]
    assert first.values["exact_match"] == (0.0, 1.0)
    assert first.values["chrf"][0] < first.values["chrf"][1] == 100.0
    assert second.slices == [1]
    exact = differences.metrics["exact_match"]
    assert (exact.better, exact.worse, exact.equal, exact.mean) == (1, 1, 1, 0.0)
    assert exact.effect_size == 0.0
    assert differences.errors == {"number": (1, 0)}
    assert "bleu" not in differences.metrics


def test_effect_size_and_metrics_of_which_less_is_better():
    references, sources = ["ein Hund läuft"] * 4, [""] * 4
    production = ["ein Hund läuft", "ein Hund", "Hund", "ein Hund läuft"]
    candidate = ["ein Hund läuft", "ein Hund läuft", "ein Hund läuft", "ein Hund"]
    config = EvaluationConfig(metrics=("ter", "chrf"), samples=0)
    differences = compare(candidate, production, references, sources, config=config)
    ter = differences.metrics["ter"]
    changes = [row.values["ter"][0] - row.values["ter"][1] for row in differences.rows] + [0.0]
    mean = sum(changes) / 4
    deviation = (sum((change - mean) ** 2 for change in changes) / 3) ** 0.5
    assert (ter.better, ter.worse, ter.equal) == (2, 1, 1)
    assert ter.mean == pytest.approx(mean)
    assert ter.effect_size == pytest.approx(mean / deviation)


def test_the_evaluator_writes_the_file(tmp_path):
    alone = evaluating.evaluate(tmp_path, evaluating.CONFIG)
    assert RowDifferences.read(alone.folder) is None
    pair = evaluating.evaluate(tmp_path, evaluating.CONFIG, production=evaluating.BAD)
    differences = RowDifferences.read(pair.folder)
    assert differences.different == 4
    assert differences.metrics["chrf"].better == 4


def test_texts_have_chrf_and_rows_without_other_outputs_are_equal():
    config = EvaluationConfig(metrics=("bleu",), samples=0)
    rows = ["two dogs run", "b"], ["two dogs ran", "b"], ["two dogs run", "c"], ["", ""]
    differences = compare(*rows, config=config)
    assert list(differences.metrics) == ["chrf"]
    assert [row.row for row in differences.rows] == [0]
    assert differences.rows[0].values["chrf"][0] == 100.0


def test_errors_are_counted_on_all_rows(monkeypatch):
    monkeypatch.setattr(row_differences, "_MAX_ROWS", 1)
    sources, references = ["3 dogs"] * 4, ["3 Hunde"] * 4
    candidate, production = ["4 Hunde", "3 Hunde"] * 2, ["3 Hunde", "4 Hunde"] * 2
    differences = compare(candidate, production, references, sources)
    assert len(differences.rows) == 1
    assert differences.errors == {"number": (2, 2)}


def test_equal_models_have_no_rows():
    differences = compare(["a b"], ["a b"], ["a c"], ["x y"])
    assert (differences.rows, differences.different, differences.total) == ([], 0, 1)
    assert differences.metrics["chrf"].effect_size is None
