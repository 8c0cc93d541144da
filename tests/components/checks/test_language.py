"""The languages of rows: what counts as another language, and what a check does with the row."""

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import settings
from pydantic import ValidationError

from regard.components.checks import language
from regard.components.checks.base import CheckContext, RowTexts, TextNames
from regard.components.checks.language import LanguageCheck
from regard.components.data.config_rules import validate_data
from regard.components.settings.data import DataConfig
from regard.components.settings.data_checks import DataChecksConfig
from tests.components.corpora import POINTED, SUMMARISED, TRANSLATION, corpus_of, table, write_files
from tests.components.data.test_row_filter import survey

IS_THOROUGH = settings.get_current_profile_name() == "thorough"
STEP = 1 if IS_THOROUGH else 5  # rows are skipped unless `make test-all` reads all of them
PAIR = {"source": "en", "target": "de"}
ENGLISH = "A man walks his dog along the beach."
GERMAN = "Ein Mann läuft mit seinem Hund am Strand."
FRENCH = "Un homme promène son chien sur la plage."


def details(check, **texts):
    """What the check finds, which it does if and only if a row is affected."""
    row, context = RowTexts(TextNames(list(texts), [], []), texts), CheckContext()
    result = list(check.details(row, context))
    assert check.affects(row, context) == bool(result)
    return [tuple(text.split(" is ")) for text in result]


def detect(source, target, **options):
    check = LanguageCheck(**{"languages": PAIR, **options})
    return details(check, source=[source], target=[target])


def test_other_languages():
    assert detect(ENGLISH, GERMAN) == []
    assert detect(GERMAN, ENGLISH) == [("source", "de"), ("target", "en")]
    assert detect(ENGLISH, FRENCH) == [("target", "fr")]
    assert detect(FRENCH, FRENCH, languages={"target": "de"}) == [("target", "fr")]


def test_texts_that_are_too_short_or_not_clear():
    assert detect("Der Hund schläft.", GERMAN) == [("source", "de")]
    assert detect("Der Hund schläft.", GERMAN, min_characters=18) == []
    assert detect("Der Hund schläft.", GERMAN, confidence=0.99) == []
    for text in ("Ja.", "Hotel Berlin", "15:10 € — 12345678", "", " " * 30):
        assert detect(text, text) == []


def test_all_texts_of_a_side_count():
    check = LanguageCheck(languages={"target": "de"})
    expected = [("target", "en"), ("target", "fr")]
    assert details(check, target=[GERMAN, ENGLISH, FRENCH]) == expected
    assert details(check, target=[]) == []


def test_rows_are_dropped(tmp_path):
    rows = [(ENGLISH, GERMAN), (GERMAN, GERMAN), (ENGLISH, FRENCH), ("Yes.", "Oui.")]
    write_files(tmp_path, {"a.tsv": table(*rows * 5), "rest.tsv": table(*rows)})
    check = {"languages": PAIR, "action": "drop"}
    options = {"train": "a.tsv", "bad_rows_limit": 0.6}
    summary, trained, changes = survey(tmp_path, **options, checks={"language": check})
    lines = [line for line in range(1, 21) if line % 4 in (2, 3)]
    assert changes["language/dropped"] == lines[: len(changes["language/dropped"])]
    assert trained == [rows[0], rows[3]] * 5
    assert summary.rows["test"] == 4
    check = {"languages": PAIR, "action": "warn"}
    assert survey(tmp_path, **options, checks={"language": check})[2] == {}


def test_settings():
    config = DataChecksConfig.model_validate({"language": {"languages": PAIR}})
    assert (config.language.action, config.language.limit) == ("warn", 0.01)
    assert DataChecksConfig().language is None
    for section in ({}, {"languages": {}}, {"languages": PAIR, "confidence": 0.5}):
        with pytest.raises(ValidationError):
            DataChecksConfig.model_validate({"language": section})


def test_settings_change_the_training_only_if_rows_are_dropped():
    def key_json(**language):
        checks = {"language": {"languages": PAIR, **language}}
        return DataConfig.model_validate({"train": "a.tsv", "checks": checks}).key_json()

    plain = DataConfig.model_validate({"train": "a.tsv"}).key_json()
    assert key_json() == key_json(action="fail") == plain
    dropping = key_json(action="drop")
    assert dropping != plain
    assert key_json(action="drop", confidence=0.9) != dropping
    assert key_json(action="drop", limit=0.5) == dropping


def problems(by_feature, features=TRANSLATION):
    checks = {"language": {"languages": by_feature}}
    corpus = corpus_of("/data", features, train="a.tsv", checks=checks)
    return [
        (".".join(map(str, problem.path)), problem.message)
        for problem in validate_data(corpus.config, corpus.features)
    ]


def test_sides_and_codes():
    assert problems(PAIR) == []
    assert problems({"summary": "en"}, SUMMARISED) == []
    ((key, message),) = problems({"titel": "en"}, SUMMARISED)
    assert key == "data.checks.language.languages.titel"
    assert "unknown side" in message
    assert "text, summary" in message
    ((key, message),) = problems({"source": "english"})
    assert key == "data.checks.language.languages.source"
    assert message.startswith("unknown language 'english'; use one of ")
    assert ", en, " in message
    ((key, message),) = problems({"points": "en"}, POINTED)
    assert key == "data.checks.language.languages.points"
    assert message == "unknown side. This task has no texts; remove the check"


def test_missing_package(monkeypatch):
    monkeypatch.setattr(language.importlib.util, "find_spec", lambda name: None)
    ((key, message),) = problems(PAIR)
    assert key == "data.checks.language.languages"
    assert message == "need the package py3langid; pip install 'regard[language]'"


@pytest.mark.skipif("REGARD_DATA" not in os.environ, reason="real corpora")
def test_rows_of_multi30k():
    """No true row of four languages counts as another one, and most others do."""
    folder = Path(os.environ["REGARD_DATA"], "multi30k")
    texts = {}
    for code in ("en", "de", "fr", "cs"):
        content = gzip.decompress((folder / f"test_2016_flickr.{code}.gz").read_bytes())
        texts[code] = content.decode().splitlines()[::STEP]
    for expected in texts:
        check = LanguageCheck(languages={"target": expected})
        for other, rows in texts.items():
            count = sum(bool(details(check, target=[row])) for row in rows)
            assert count == 0 if other == expected else count > 0.85 * len(rows), (expected, other)
