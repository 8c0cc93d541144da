"""Cron expressions, time zones and durations."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from regard.core.errors import UserError
from regard.pipeline.scheduling.settings import ScheduleSettings
from regard.pipeline.scheduling.triggers import (
    cron_trigger,
    next_fire_time,
    parse_duration,
    time_zone,
)

BERLIN = ZoneInfo("Europe/Berlin")


def next_times(expression, start="2026-11-22T03:00"):
    """The next two fire times as local time, from a Sunday unless stated."""
    trigger = cron_trigger(expression, BERLIN)
    at = datetime.fromisoformat(start).replace(tzinfo=BERLIN).timestamp()
    first = next_fire_time(trigger, at)
    times = [first, next_fire_time(trigger, first)]
    return [datetime.fromtimestamp(at, BERLIN).strftime("%a %d %H:%M%z") for at in times]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 3 * * *", ["Mon 23 03:00+0100", "Tue 24 03:00+0100"]),
        ("@daily", ["Mon 23 00:00+0100", "Tue 24 00:00+0100"]),
        ("@Weekly", ["Sun 29 00:00+0100", "Sun 06 00:00+0100"]),
        ("0 3 * * 0", ["Sun 29 03:00+0100", "Sun 06 03:00+0100"]),  # Sunday is 0 or 7
        ("0 3 * * 7", ["Sun 29 03:00+0100", "Sun 06 03:00+0100"]),
        ("0 3 * * 1-5", ["Mon 23 03:00+0100", "Tue 24 03:00+0100"]),
        ("0 3 * * 6,mon", ["Mon 23 03:00+0100", "Sat 28 03:00+0100"]),
        ("0 3 24 * 1", ["Mon 23 03:00+0100", "Tue 24 03:00+0100"]),  # either of the days
        ("0 3 1 jan-mar *", ["Fri 01 03:00+0100", "Mon 01 03:00+0100"]),
    ],
)
def test_cron_expressions(expression, expected):
    assert next_times(expression) == expected


@pytest.mark.parametrize(
    ("expression", "start", "expected"),
    [
        ("0 * * * *", "2026-03-29T00:30", ["Sun 29 01:00+0100", "Sun 29 03:00+0200"]),
        ("0 * * * *", "2026-10-25T01:30", ["Sun 25 02:00+0200", "Sun 25 02:00+0100"]),
        ("0 * * * *", "2026-10-25T02:30", ["Sun 25 02:00+0100", "Sun 25 03:00+0100"]),
        ("0 3 * * *", "2026-03-28T04:00", ["Sun 29 03:00+0200", "Mon 30 03:00+0200"]),
    ],
)
def test_daylight_saving_time(expression, start, expected):
    assert next_times(expression, start) == expected


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Santiago", "Australia/Lord_Howe"])
@pytest.mark.parametrize("expression", ["30 2 * * *", "*/20 * * * *", "0 0 * * *"])
def test_fire_times_increase_over_a_year_of_clock_changes(zone, expression):
    trigger, zone = cron_trigger(expression, ZoneInfo(zone)), ZoneInfo(zone)
    for month in (3, 4, 9, 10, 11):
        at = datetime(2026, month, 1, tzinfo=zone).timestamp()
        end = at + 31 * 86400
        while at < end:
            following = next_fire_time(trigger, at + 0.4)
            assert following > at
            at = following


INVALID = {
    "": "it has 0 fields",
    "0 3 * *": "it has 4 fields",
    "0 0 3 * * *": "it has 6 fields",
    "@reboot": "it has 1 fields",
    "60 3 * * *": "60",
    "0 25 * * *": "25",
    "0 3 * 13 *": "13",
    "0 3 * * 8": "8",
    "0 3 * * lun": "lun",
    "0 3 * * 5-1": "ends before it begins",
    "0 3 * * 1#1": "1#1",
    "0 3 L * *": "l",
    "5/2 * * * *": "step",
    "*/0 * * * *": "step",
    "0 3 ١ * *": "١",
    "-1 3 * * *": "-1",
    "1,,2 3 * * *": "''",
    "0 3 31 2 *": "never fires",
}


@pytest.mark.parametrize("expression", INVALID)
def test_invalid_cron_expressions(expression):
    with pytest.raises(ValueError, match=INVALID[expression]):
        cron_trigger(expression, BERLIN)


def test_time_zones(monkeypatch):
    assert time_zone("Europe/Berlin") == BERLIN
    for name in ("Mars", "../etc/passwd", ""):
        with pytest.raises(ValueError, match="is not a time zone"):
            time_zone(name)
    monkeypatch.setenv("TZ", "CET-1CEST")
    monkeypatch.setattr("tzlocal.unix._cache_tz", None)
    with pytest.raises(ValueError, match="the machine's time zone has no name"):
        time_zone(None)


def test_a_machine_without_a_named_zone_is_a_user_error(tmp_path, monkeypatch):
    """Also if only the times of messages need it."""
    monkeypatch.setenv("TZ", "CET-1CEST")
    monkeypatch.setattr("tzlocal.unix._cache_tz", None)
    path = tmp_path / "tiny.yaml"
    path.write_text("name: tiny\ndata: {train: train.tsv}\n")
    with pytest.raises(UserError, match="time zone has no name") as caught:
        ScheduleSettings(path)
    assert caught.value.where == "TZ"


def test_durations():
    assert parse_duration("90s") == timedelta(seconds=90)
    assert parse_duration("2d1h30m") == timedelta(days=2, hours=1, minutes=30)
