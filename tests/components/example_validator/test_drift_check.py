import json

import pytest

from regard.components.example_validator.drift_check import check_drift, drift_warnings
from regard.components.registry.store import LATEST
from regard.serving.contract import PROFILE
from tests.components.corpora import checks_of, write_files

LENGTHS = {"unit": "words", "bounds": [1, 2]}
CHECKS = checks_of(drift_lengths={"limit": 0.5})


def profile(*counts):
    return {"rows": 40, "features": {"source": {"lengths": {**LENGTHS, "counts": list(counts)}}}}


SHORT, LONG = profile(40, 0, 0), profile(0, 0, 40)


def publish(versions, number, stored=None):
    files = {f"{number}/saved_model.pb": "graph"}
    write_files(versions, files | ({f"{number}/{PROFILE}": json.dumps(stored)} if stored else {}))


def test_newest_version(tmp_path):
    production = json.dumps({"version": LATEST, "versions": str(tmp_path / "mine")})
    assert check_drift(production, SHORT, CHECKS) is None
    publish(tmp_path / "mine", 9, LONG)
    publish(tmp_path / "mine", 10, SHORT)
    drift = check_drift(production, SHORT, CHECKS)
    assert drift["version"] == "10"
    assert drift["checks"]["drift_lengths"]["value"] == 0
    publish(tmp_path / "mine", 11)  # has no profile: that of an older version does not count
    assert check_drift(production, SHORT, CHECKS) is None


@pytest.fixture
def compare(tmp_path):
    """Returns the drift from the profile of version 9 in production."""

    def compare(before, after, checks=CHECKS):
        (tmp_path / "profile.json").write_text(json.dumps(before))
        production = {"version": "9", "profile": str(tmp_path / "profile.json")}
        return check_drift(json.dumps(production), after, checks)

    return compare


def test_given_version(compare):
    drift = compare(LONG, SHORT)
    assert drift["version"] == "9"
    assert drift["checks"]["drift_lengths"]["value"] == 1


def test_no_drift_checks(compare):
    assert compare(LONG, SHORT, checks_of()) is None
    assert check_drift("", SHORT, CHECKS) is None


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
def test_cut_list_of_words(compare, complete, message):
    before = word_profile({f"w{i}": 20 for i in range(1200)}, complete)
    after = word_profile({"x": 100, "y": 100})
    (warning,) = drift_warnings(compare(before, after, checks_of(drift_oov={"limit": 0.02})))
    assert message in warning


def test_uncompared_features(compare):
    more = {"rows": 40, "features": {**SHORT["features"], "target": SHORT["features"]["source"]}}
    drift = compare(SHORT, more)
    assert drift["uncompared"] == {"drift_lengths": ["target"]}
    assert drift_warnings(drift) == [
        "drift_lengths: the profile of version 9 in production does not describe target"
    ]
    assert drift_warnings(compare(SHORT, SHORT)) == []
