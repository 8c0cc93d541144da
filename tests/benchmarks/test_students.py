"""The table of benchmarks/students.py, and the searches that it measures."""

import pytest

from benchmarks.students import SEARCHES, TEACHER, change_search, format_results
from regard.models.settings.search import BeamSearchConfig, GreedySearchConfig


@pytest.mark.parametrize("name", list(SEARCHES))
def test_searches_keep_the_settings_of_the_model(name):
    limits = {"max_length_factor": 1.2, "no_repeat_ngram_size": 3}
    published = BeamSearchConfig(beam_size=4, length_penalty=1.5, **limits).model_dump(mode="json")
    section = change_search(published, SEARCHES[name])
    if name == "greedy":
        assert GreedySearchConfig.model_validate(section) == GreedySearchConfig(**limits)
    else:
        search = BeamSearchConfig.model_validate(section)
        expected = BeamSearchConfig(length_penalty=1.5, **limits, **SEARCHES[name])
        assert search == expected


def test_speeds_are_compared_within_each_round():
    references = ["ein Hund läuft schnell .", "zwei Katzen schlafen heute ."]
    wrong = [references[0], "eine Katze schläft"]
    results = {
        TEACHER: [{"outputs": references, "seconds": [second]} for second in (1.0, 4.0, 2.0)],
        "greedy": [{"outputs": wrong, "seconds": [second]} for second in (0.5, 1.0, 1.0)],
    }
    lines = format_results(results, references).splitlines()
    teacher, greedy = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:])
    assert teacher == [TEACHER, "100.00", "1", "1.00"]
    assert greedy[2:] == ["2", "2.00"]
    assert float(greedy[1]) < 80
