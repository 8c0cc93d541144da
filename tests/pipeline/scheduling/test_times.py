"""The times of cron expressions, over the days when clocks are set, too."""

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from components.errors import UserError
from pipeline.scheduling.times import CronTimes, EveryTimes, seconds_in, zone_of

BERLIN = ZoneInfo("Europe/Berlin")


def local(expression, start, count, zone=BERLIN):
    """The next times as the clock on the wall shows them, with its distance from UTC."""
    times, at = CronTimes(expression, zone), datetime.fromisoformat(start).replace(tzinfo=zone)
    found = []
    for _ in range(count):
        at = times.after(at)
        assert at.tzinfo is timezone.utc
        found.append(at.astimezone(zone).strftime("%d %H:%M%z"))
    return found


def test_a_time_of_day_is_that_of_the_zone():
    assert local("0 3 * * *", "2026-11-22T03:00", 2) == ["23 03:00+0100", "24 03:00+0100"]
    assert local("0 3 * * *", "2026-11-22T02:59:59", 1) == ["22 03:00+0100"]


def test_what_falls_into_the_lost_hour_comes_at_its_end():
    assert local("30 2 * * *", "2026-03-28T03:00", 2) == ["29 03:00+0200", "30 02:30+0200"]
    assert local("10,40 2 * * *", "2026-03-28T03:00", 2) == ["29 03:00+0200", "30 02:10+0200"]
    assert local("15 2 * * *", "2026-10-03T03:00", 2, ZoneInfo("Australia/Lord_Howe")) == [
        "04 02:30+1100",
        "05 02:15+1100",
    ]
    assert local("0 * * * *", "2026-03-29T00:30", 3) == [
        "29 01:00+0100",
        "29 03:00+0200",
        "29 04:00+0200",
    ]


@pytest.mark.parametrize(
    ("expression", "zone", "before", "expected"),
    [
        ("0 0 * * *", "Asia/Beirut", "2027-03-27T12:00", ["28 01:00+0300", "29 00:00+0300"]),
        ("@weekly", "Asia/Beirut", "2027-03-27T12:00", ["28 01:00+0300", "04 00:00+0300"]),
        ("@daily", "Africa/Cairo", "2027-04-29T12:00", ["30 01:00+0300", "01 00:00+0300"]),
        ("@daily", "America/Havana", "2027-03-13T12:00", ["14 01:00-0400", "15 00:00-0400"]),
        # From one offset over two changes of the clock: the first of two midnights, too.
        ("0 0 7 11 *", "America/Havana", "2027-01-01T12:00", ["07 00:00-0400", "07 00:00-0500"]),
        ("0 * 7 11 *", "America/Havana", "2027-11-07T00:00", ["07 00:00-0500", "07 01:00-0500"]),
    ],
)
def test_a_midnight_that_is_lost_or_comes_twice_loses_no_day(expression, zone, before, expected):
    assert local(expression, before, 2, ZoneInfo(zone)) == expected


def test_every_hour_goes_on_where_half_an_hour_comes_twice():
    zone = ZoneInfo("Australia/Lord_Howe")
    assert local("*/20 * * * *", "2027-04-04T01:20", 4, zone) == [
        "04 01:40+1100",
        "04 01:40+1030",
        "04 02:00+1030",
        "04 02:20+1030",
    ]


def test_a_time_of_day_comes_once_where_an_hour_comes_twice():
    assert local("30 2 * * *", "2026-10-24T03:00", 2) == ["25 02:30+0200", "26 02:30+0100"]


def test_every_hour_is_every_hour_where_one_comes_twice():
    assert local("0 * * * *", "2026-10-25T01:30", 4) == [
        "25 02:00+0200",
        "25 02:00+0100",
        "25 03:00+0100",
        "25 04:00+0100",
    ]
    times = CronTimes("*/20 * * * *", BERLIN)
    at = datetime(2026, 10, 24, 22, tzinfo=timezone.utc)
    for _ in range(12):
        following = times.after(at)
        assert following - at == timedelta(minutes=20)
        at = following


def test_sunday_is_0_and_7_and_monday_1():
    # 22 November 2026 is a Sunday.
    for expression in ("0 3 * * 0", "0 3 * * 7", "0 3 * * sun"):
        assert local(expression, "2026-11-22T04:00", 1) == ["29 03:00+0100"]
    assert local("0 3 * * 1-5", "2026-11-20T04:00", 2) == ["23 03:00+0100", "24 03:00+0100"]
    assert local("0 3 * * */3", "2026-11-22T04:00", 3) == [
        "25 03:00+0100",
        "28 03:00+0100",
        "29 03:00+0100",
    ]
    assert local("0 3 * * 5/1", "2026-11-22T04:00", 2) == ["27 03:00+0100", "28 03:00+0100"]


def test_a_day_of_the_month_or_one_of_the_week():
    assert local("0 3 25 * mon", "2026-11-22T04:00", 3) == [
        "23 03:00+0100",
        "25 03:00+0100",
        "30 03:00+0100",
    ]
    november_and_december = ["25 03:00+0100", "25 03:00+0100"]
    assert local("0 3 25 * ?", "2026-11-22T04:00", 2) == november_and_december


def test_six_fields_begin_with_the_second():
    found = CronTimes("*/30 * * * * *", BERLIN).after(datetime(2026, 1, 1, tzinfo=timezone.utc))
    assert found == datetime(2026, 1, 1, 0, 0, 30, tzinfo=timezone.utc)


def test_words_stand_for_expressions():
    assert local("@daily", "2026-11-22T04:00", 1) == ["23 00:00+0100"]


def test_a_day_that_there_never_is():
    assert CronTimes("0 3 30-31 2 *", BERLIN).after(datetime.now(timezone.utc)) is None


def test_no_expression():
    with pytest.raises(UserError, match="no hour"):
        CronTimes("0 25 * * *", BERLIN)


def test_an_interval_is_one_of_real_time():
    at = datetime(2026, 10, 25, 0, 30, tzinfo=timezone.utc)
    assert EveryTimes(timedelta(hours=2)).after(at.astimezone(BERLIN)) == at + timedelta(hours=2)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("15m", 900), ("1h30m", 5400), ("2d", 172_800)]
)
def test_durations(text, seconds):
    assert seconds_in(text) == seconds


def test_a_zone_that_there_is_not():
    with pytest.raises(ValueError, match="'Mars/Olympus' is no time zone"):
        zone_of("Mars/Olympus")
    assert zone_of("UTC").key == "UTC"


def test_a_machine_whose_zone_has_no_name(monkeypatch):
    monkeypatch.setenv("TZ", "CET-1CEST")
    monkeypatch.setattr("tzlocal.unix._cache_tz", None)
    with pytest.raises(UserError, match="time zone has no name that is known") as caught:
        zone_of(None)
    assert caught.value.where == "TZ=CET-1CEST"
    assert "schedule.timezone" in caught.value.remedy
