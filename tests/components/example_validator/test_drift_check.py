from __future__ import annotations

import json

import pytest

from regard.components.example_validator.drift_check import check_drift, drift_warnings
from regard.components.registry.store import LATEST, PROFILE
from regard.components.settings.data import DataChecksConfig

LENGTHS = {"unit": "words", "bounds": [1, 2]}
OFF = dict.fromkeys(DataChecksConfig.model_fields)


def checks_of(**checks):
    return DataChecksConfig.model_validate({**OFF, **checks})


CHECKS = checks_of(drift_lengths={"limit": 0.5})


def profile(*counts):
    return {"rows": 40, "features": {"source": {"lengths": {**LENGTHS, "counts": list(counts)}}}}


def publish(versions, number, stored=None):
    folder = versions / str(number)
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    if stored is not None:
        (folder / PROFILE).parent.mkdir()
        (folder / PROFILE).write_text(json.dumps(stored))


def test_newest_version(tmp_path):
    versions = tmp_path / "mine"
    production = json.dumps({"version": LATEST, "versions": str(versions)})
    assert check_drift(production, profile(40, 0, 0), CHECKS) is None
    publish(versions, 9, profile(0, 0, 40))
    publish(versions, 10, profile(40, 0, 0))
    drift = check_drift(production, profile(40, 0, 0), CHECKS)
    assert drift["version"] == "10"
    assert drift["checks"]["drift_lengths"]["value"] == 0
    publish(versions, 11)  # has no profile: that of an older version does not count
    assert check_drift(production, profile(40, 0, 0), CHECKS) is None


def test_given_version(tmp_path):
    publish(tmp_path / "mine", 9, profile(0, 0, 40))
    publish(tmp_path / "mine", 10, profile(40, 0, 0))
    production = json.dumps({"version": "9", "profile": str(tmp_path / "mine" / "9" / PROFILE)})
    drift = check_drift(production, profile(40, 0, 0), CHECKS)
    assert drift["version"] == "9"
    assert drift["checks"]["drift_lengths"]["value"] == 1


def test_no_drift_checks(tmp_path):
    production = json.dumps({"version": "9", "profile": str(tmp_path / "nowhere.json")})
    assert check_drift(production, profile(40, 0, 0), checks_of()) is None
    assert check_drift("", profile(40, 0, 0), CHECKS) is None


def word_profile(words, complete=True):
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
    ("complete", "message"),
    [
        (True, "100.00% of the running words of source are new, 0.00% expected"),
        (False, "of source are not among the 1,200 most frequent words of that version, 0.00%"),
    ],
)
def test_cut_list_of_words(tmp_path, complete, message):
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(word_profile({f"w{i}": 20 for i in range(1200)}, complete)))
    production = json.dumps({"version": "3", "profile": str(path)})
    checks = checks_of(drift_oov={"limit": 0.02})
    (warning,) = drift_warnings(check_drift(production, word_profile({"x": 100, "y": 100}), checks))
    assert message in warning


def test_uncompared_features(tmp_path):
    publish(tmp_path / "mine", 9, profile(40, 0, 0))
    production = json.dumps({"version": "9", "profile": str(tmp_path / "mine" / "9" / PROFILE)})
    more = profile(40, 0, 0)
    more["features"]["target"] = more["features"]["source"]
    drift = check_drift(production, more, CHECKS)
    assert drift["uncompared"] == {"drift_lengths": ["target"]}
    (warning,) = drift_warnings(drift)
    assert warning == (
        "drift_lengths: the profile of version 9 in production does not describe target"
    )
    assert drift_warnings(check_drift(production, profile(40, 0, 0), CHECKS)) == []
