"""Times of cron expressions, compared with a daemon that looks at the clock every minute."""

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from regard.pipeline.scheduling.cron import CronSchedule

UTC = timezone.utc
# Zones and the days of some of their clock changes.
CHANGES = {
    "Europe/Berlin": ["2026-03-29", "2026-10-25", "2027-03-28", "2028-10-29"],
    "America/Havana": ["2026-03-08", "2026-11-01", "2027-03-14"],  # midnight
    "America/Santiago": ["2026-04-05", "2026-09-06"],  # midnight
    "America/New_York": ["2026-03-08", "2026-11-01", "2027-11-07"],
    "Australia/Lord_Howe": ["2026-04-05", "2026-10-04"],  # half an hour
    "Africa/Cairo": ["2026-04-24", "2026-10-29"],
    "Asia/Kathmandu": ["2026-05-05"],  # none
}
FIXED = {
    "0 0 * * *": ({0}, {0}),
    "30 2 * * *": ({30}, {2}),
    "15,45 0-3 * * *": ({15, 45}, {0, 1, 2, 3}),
    "0 3 * * *": ({0}, {3}),
}
WILDCARDS = {
    "*/20 * * * *": (set(range(0, 60, 20)), set(range(24))),
    "30 * * * *": ({30}, set(range(24))),
    "* 2 * * *": (set(range(60)), {2}),
}


def clock_times(minutes, hours, is_fixed, zone, start, end):
    """Fire times of a daemon that sees the clock each minute and runs skipped times once."""
    times, latest = [], start.astimezone(zone).replace(tzinfo=None) - timedelta(minutes=1)
    moment = start
    while moment < end:
        local = moment.astimezone(zone).replace(tzinfo=None)
        candidates = [local]
        if is_fixed:  # everything that the clock has passed for the first time
            count = max(0, (local - latest) // timedelta(minutes=1))
            candidates = [latest + timedelta(minutes=n) for n in range(1, count + 1)]
            latest = max(latest, local)
        if any(time.minute in minutes and time.hour in hours for time in candidates):
            times.append(moment.timestamp())
        moment += timedelta(minutes=1)
    return times


@pytest.mark.parametrize("zone", CHANGES)
@pytest.mark.parametrize("expression", [*FIXED, *WILDCARDS])
def test_clock_changes(zone, expression):
    schedule = CronSchedule(expression, ZoneInfo(zone))
    minutes, hours = (FIXED | WILDCARDS)[expression]
    for day in CHANGES[zone]:
        start = datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC) - timedelta(days=1)
        end = start + timedelta(days=2)
        is_fixed = expression in FIXED
        expected = clock_times(minutes, hours, is_fixed, ZoneInfo(zone), start, end)
        times, at = [], start.timestamp() - 1
        while (at := schedule.next_after(at)) < end.timestamp():
            times.append(at)
        assert times == expected


def test_a_day_that_a_zone_left_out():
    """Samoa had no 30 December 2011."""
    zone = ZoneInfo("Pacific/Apia")
    at = datetime(2011, 12, 29, 13, tzinfo=zone).timestamp()
    following = CronSchedule("0 12 * * *", zone).next_after(at)
    assert datetime.fromtimestamp(following, zone).isoformat() == "2011-12-31T00:00:00+14:00"


@pytest.mark.parametrize(
    ("expression", "equal"),
    [
        ("0 3 * * 0-6", "0 3 * * *"),
        ("0 3 * * 0-7", "0 3 * * *"),
        ("0 17 * * Sun-Thu", "0 17 * * 0,1,2,3,4"),
        ("0 17 * * fri-sun", "0 17 * * 5,6,7"),
        ("0 17 * * sun-sun", "0 17 * * 0"),
        ("0 17 * * 0-0", "0 17 * * 0"),
        ("0 3 * * 1-5/2", "0 3 * * mon,wed,fri"),
        ("0 3 * * */2", "0 3 * * 0,2,4,6"),
        ("0 3 * JAN-mar *", "0 3 * 1-3 *"),
        ("@midnight", "@daily"),
        ("@annually", "0 0 1 1 *"),
    ],
)
def test_equal_expressions(expression, equal):
    schedules = [CronSchedule(text, ZoneInfo("UTC")) for text in (expression, equal)]
    at = datetime(2026, 11, 22, tzinfo=UTC).timestamp()
    for _ in range(20):
        first, second = [schedule.next_after(at) for schedule in schedules]
        assert first == second
        at = first


def test_leap_days():
    schedule = CronSchedule("0 0 29 2 *", ZoneInfo("UTC"))
    at = datetime(2096, 3, 1, tzinfo=UTC).timestamp()
    assert datetime.fromtimestamp(schedule.next_after(at), UTC).year == 2104
    assert CronSchedule("0 0 30 2 *", ZoneInfo("UTC")).next_after(at) is None
