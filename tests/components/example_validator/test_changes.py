"""What has changed since the data of some version: which version, and how it is told."""

from __future__ import annotations

import json

import pytest

from components.example_validator.changes import held_against, sentences
from components.registry import PROFILE
from components.registry.rival import LATEST

LENGTHS = {"unit": "words", "bounds": [1, 2]}
CHECKS = {"drift_lengths": {"limit": 0.5, "action": "warn"}}


def profile(*counts):
    return {"rows": 40, "features": {"source": {"lengths": {**LENGTHS, "counts": list(counts)}}}}


def push(versions, number, kept=None):
    folder = versions / str(number)
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    if kept is not None:
        (folder / PROFILE).parent.mkdir()
        (folder / PROFILE).write_text(json.dumps(kept))


def test_the_newest_version_is_looked_up_where_none_is_named(tmp_path):
    versions = tmp_path / "mine"
    given = json.dumps({"version": LATEST, "versions": str(versions)})
    assert held_against(given, profile(40, 0, 0), CHECKS) is None
    push(versions, 9, profile(0, 0, 40))
    push(versions, 10, profile(40, 0, 0))
    found = held_against(given, profile(40, 0, 0), CHECKS)
    assert found["version"] == "10"
    assert found["checks"]["drift_lengths"]["value"] == 0
    push(versions, 11)  # it kept no profile: an older one is not that of production
    assert held_against(given, profile(40, 0, 0), CHECKS) is None


def test_the_named_version_is_taken_whichever_is_the_newest(tmp_path):
    push(tmp_path / "mine", 9, profile(0, 0, 40))
    push(tmp_path / "mine", 10, profile(40, 0, 0))
    given = json.dumps({"version": "9", "profile": str(tmp_path / "mine" / "9" / PROFILE)})
    found = held_against(given, profile(40, 0, 0), CHECKS)
    assert found["version"] == "9"
    assert found["checks"]["drift_lengths"]["value"] == 1


def test_nothing_is_looked_up_where_no_check_asks_for_it(tmp_path):
    given = json.dumps({"version": "9", "profile": str(tmp_path / "nowhere.json")})
    assert held_against(given, profile(40, 0, 0), {}) is None
    assert held_against("", profile(40, 0, 0), CHECKS) is None


def of_words(words, complete=True):
    source = {
        "total": sum(words.values()),
        "distinct": len(words) + (not complete),
        "once": 0,
        "words": words,
        "complete": complete,
        "lengths": {"unit": "character", "bounds": [5], "counts": [1, 0]},
    }
    return {"rows": 1, "features": {"source": source}}


@pytest.mark.parametrize(
    ("complete", "says"),
    [
        (True, "100.00% of the running words of source are new, where 0.00%"),
        (False, "of source are outside the 1,200 most frequent words of then, where 0.00%"),
    ],
)
def test_where_the_list_of_words_was_cut_it_is_said(tmp_path, complete, says):
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(of_words({f"w{i}": 20 for i in range(1200)}, complete)))
    production = json.dumps({"version": "3", "profile": str(path)})
    checks = {"drift_oov": {"limit": 0.02, "action": "warn"}}
    (told,) = sentences(held_against(production, of_words({"x": 100, "y": 100}), checks))
    assert says in told


def test_a_feature_that_production_tells_nothing_of_is_named(tmp_path):
    push(tmp_path / "mine", 9, profile(40, 0, 0))
    given = json.dumps({"version": "9", "profile": str(tmp_path / "mine" / "9" / PROFILE)})
    more = profile(40, 0, 0)
    more["features"]["target"] = more["features"]["source"]
    found = held_against(given, more, CHECKS)
    assert found["uncompared"] == {"drift_lengths": ["target"]}
    (told,) = sentences(found)
    assert told.startswith("drift_lengths: target: not held against version 9 in production")
    assert sentences(held_against(given, profile(40, 0, 0), CHECKS)) == []
