"""The section ``schedule``: what it fills in, and what cannot be."""

from pathlib import Path

import pytest

from pipeline.config import load
from tests.pipeline.config.refusals import compare, problems_of

HEAD = "name: x\ndata:\n  train: '{SPAN}.tsv'\n"
WITH = HEAD + "schedule:\n"


def loaded(folder: Path, text: str):
    (folder / "x.yaml").write_text(text)
    return load(folder / "x.yaml")


def test_without_it_there_is_none(tmp_path):
    assert loaded(tmp_path, HEAD).schedule is None


def test_without_cron_it_looks_every_quarter_of_an_hour(tmp_path):
    schedule = loaded(tmp_path, WITH + "  new_span: true\n").schedule
    assert schedule.interval.total_seconds() == 900
    assert schedule.conditions == ("new_span",)


def test_drift_takes_the_limits_of_the_checks_unless_it_has_its_own(tmp_path):
    text = HEAD + "  checks: {drift_words: {limit: 0.1}, drift_lengths: null}\n"
    config = loaded(tmp_path, text + "schedule: {drift: {oov: 0.2}}\n")
    limits = config.schedule.drift.by_check(config.data.checks)
    assert limits == {"drift_words": 0.1, "drift_oov": 0.2}


def test_another_time_is_no_other_model(tmp_path):
    from pipeline.scheduling.look import settings_digest

    plain = settings_digest(loaded(tmp_path, HEAD))
    assert settings_digest(loaded(tmp_path, WITH + "  new_span: true\n")) == plain
    tune = "tune: {over: {training.learning_rate: {log: [0.0001, 0.01]}}}\n"
    for aside in (tune, "beam: {runner: processes}\n"):
        assert settings_digest(loaded(tmp_path, HEAD + aside)) == plain
    other = HEAD + "training: {max_epochs: 3}\n"
    assert settings_digest(loaded(tmp_path, other)) != plain


CASES = {
    "no expression": (
        WITH + "  cron: 0 25 * * *\n",
        ["5: schedule.cron: '0 25 * * *' is no cron expression: '25' is no hour (0 to 23); write"],
    ),
    "a day that there never is": (
        WITH + "  cron: 0 3 31 2 *\n",
        ["5: schedule.cron: '0 3 31 2 *' never comes: there is no such day"],
    ),
    "no zone": (
        WITH + "  cron: '@daily'\n  timezone: Europe/Berln\n",
        ["6: schedule.timezone: 'Europe/Berln' is no time zone; did you mean Europe/Berlin?"],
    ),
    "a zone of nothing": (
        WITH + "  every: 1h\n  timezone: UTC\n",
        ["6: schedule.timezone: is that of schedule.cron, which is not given"],
    ),
    "cron and interval": (
        WITH + "  cron: '@daily'\n  every: 1h\n",
        ["6: schedule.every: cannot be given together with schedule.cron"],
    ),
    "no interval": (
        WITH + "  every: 5 minutes\n",
        ["5: schedule.every: '5 minutes' is not possible: How long to wait from one look"],
    ),
    "an interval of nothing": (
        WITH + "  every: 0m\n",
        ["5: schedule.every: '0m' is not possible"],
    ),
    "an interval that is too long": (
        WITH + "  every: 367d\n",
        ["5: schedule.every: 367d is too long; 366d is the most"],
    ),
    "a wait that is too long": (
        WITH + "  backoff: 999999999d999999999d\n",
        ["5: schedule.backoff: 999999999d999999999d is too long; 366d is the most"],
    ),
    "no spans": (
        "name: x\ndata: {train: a.tsv}\nschedule: {new_span: true}\n",
        ["3: schedule.new_span: no path of data has a placeholder such as {SPAN}"],
    ),
    "a drift that is refused": (
        HEAD + "  checks: {drift_words: {limit: 0.1, action: fail}}\nschedule: {drift: {}}\n",
        ["5: schedule.drift.words: every run for a drift above 0.1 would be refused: data.checks."],
    ),
    "no drift is measured": (
        HEAD + "  checks: {drift_words: null, drift_oov: null, drift_lengths: null}\n"
        "schedule: {drift: {}}\n",
        ["5: schedule.drift: data.checks measures no drift; give a limit, such as {words: 0.03}"],
    ),
    "an unknown key": (
        WITH + "  crom: '@daily'\n",
        ["5: schedule.crom: unknown key; did you mean cron?"],
    ),
}


def test_a_machine_whose_zone_has_no_name(tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "CET-1CEST")
    monkeypatch.setattr("tzlocal.unix._cache_tz", None)
    expected = "4: schedule.timezone: the machine's time zone has no name that is known (TZ=CET-"
    compare(problems_of(tmp_path, WITH + "  cron: '@daily'\n"), [expected])


@pytest.mark.parametrize("case", CASES)
def test_refused(case, tmp_path):
    text, expected = CASES[case]
    compare(problems_of(tmp_path, text), expected)
