"""The section ``schedule``: defaults and checks."""

import pytest

from tests.pipeline.config.refusals import compare, load_text, problems_of

HEAD = "name: x\ndata:\n  train: '{SPAN}.tsv'\n"
WITH = HEAD + "schedule:\n"


def test_the_section_is_optional(tmp_path):
    assert load_text(tmp_path, HEAD).schedule is None


def test_the_default_interval_is_15_minutes(tmp_path):
    schedule = load_text(tmp_path, WITH + "  new_span: true\n").schedule
    assert schedule.interval.total_seconds() == 900
    assert schedule.conditions == ("new_span",)


CASES = {
    WITH + "  cron: 0 25 * * *\n": (
        "5: schedule.cron: '0 25 * * *' is not a cron expression: '25' is no hour"
    ),
    WITH + "  cron: 0 3 31 2 *\n": (
        "5: schedule.cron: '0 3 31 2 *' never fires: there is no such date"
    ),
    WITH + "  cron: '@daily'\n  timezone: Europe/Berln\n": (
        "6: schedule.timezone: 'Europe/Berln' is not a time zone. Did you mean Europe/Berlin?"
    ),
    WITH + "  every: 1h\n  timezone: UTC\n": (
        "6: schedule.timezone: has no effect without schedule.cron"
    ),
    WITH + "  cron: '@daily'\n  every: 1h\n": (
        "6: schedule.every: cannot be combined with schedule.cron"
    ),
    WITH + "  every: 5 minutes\n": (
        "5: schedule.every: '5 minutes' is not possible: Interval between checks"
    ),
    WITH + "  backoff: 999999999d\n": "5: schedule.backoff: '999999999d' is not possible",
    "name: x\ndata: {train: a.tsv}\nschedule: {new_span: true}\n": (
        "3: schedule.new_span: needs a path of data with a {SPAN}"
    ),
    HEAD + "  checks: {drift_words: {limit: 0.1, action: fail}}\nschedule: {drift: true}\n": (
        "5: schedule.drift: has no effect while data.checks.drift_words fails; set its action"
    ),
    (
        HEAD + "  checks: {drift_words: null, drift_oov: null, drift_lengths: null}\n"
        "schedule: {drift: true}\n"
    ): ("5: schedule.drift: needs a limit, such as data.checks.drift_words"),
}


@pytest.mark.parametrize(("text", "expected"), CASES.items())
def test_invalid_sections(text, expected, tmp_path):
    compare(problems_of(tmp_path, text), expected)
