from __future__ import annotations

import json

import pytest

from components.example_validator.changes import held_against, sentences


def profile(words, complete=True):
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
    path.write_text(json.dumps(profile({f"w{i}": 20 for i in range(1200)}, complete)))
    production = json.dumps({"version": "3", "profile": str(path)})
    checks = {"drift_oov": {"limit": 0.02, "action": "warn"}}
    (told,) = sentences(held_against(production, profile({"x": 100, "y": 100}), checks))
    assert says in told
