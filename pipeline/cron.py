"""Cron expressions as people write them, and as the schedulers read them that we hand them to.

Everybody's cron has five fields, from the minute on, and Sunday is 0 or 7. Kubeflow's has six, from
the second on, and knows no 7; a five-field one would be read with its minutes as seconds. So five
fields get a second in front, and six stay as they are. ``pipeline.scheduling`` reads the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from components.errors import UserError

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)  # days of the months
# Name, least, greatest, the words for numbers from the least on.
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("second", 0, 59, ()),
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_PART = re.compile(r"(?P<all>[*?])|(?P<first>\w+)(-(?P<last>\w+))?")
_REMEDY = (
    "Write minute, hour, day of the month, month and day of the week, such as '0 3 * * 1-5' for "
    "three o'clock on working days; or six fields with the second in front; or @hourly, @daily, "
    "@weekly, @monthly, @yearly."
)


def six_fields(expression: str, where: str = "--cron", often: bool = True) -> str:
    """An expression with the second first, as Kubeflow reads it.

    Args:
        expression: five or six fields, or a word such as ``@daily``.
        where: what it was given as, for the error.
        often: whether it may come several times a minute.

    Raises:
        UserError: it is no cron expression, never comes, or comes too often.
    """
    fields = _MACROS.get(expression.strip().lower(), expression).split()
    if len(fields) == len(_FIELDS) - 1:
        fields = ["0", *fields]
    if len(fields) != len(_FIELDS):
        count = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
        raise UserError(f"{expression!r} is no cron expression: it has {count}", where, _REMEDY)
    try:
        made = list(map(_field, fields, range(len(_FIELDS))))
    except ValueError as error:
        raise UserError(f"{expression!r} is no cron expression: {error}", where, _REMEDY) from None
    if not _comes(made):
        raise UserError(f"{expression!r} never comes: there is no such day", where, _REMEDY)
    if not often and not _is_number(made[0]):
        message = f"{expression!r} would start several runs a minute"
        raise UserError(message, where, "Give one second, or five fields.")
    return " ".join(made)


def _field(text: str, index: int) -> str:
    return ",".join(part for item in text.split(",") for part in _item(item, index))


def _item(text: str, index: int) -> Iterator[str]:
    """One item of a list; more than one where a range of days goes over Sunday."""
    name, low, high, words = _FIELDS[index]
    body, slash, step = text.partition("/")
    found = _PART.fullmatch(body)
    if found is None or (slash and not _is_step(step, high)):
        raise ValueError(f"{text!r} is no {name}")
    tail = f"/{int(step)}" if slash else ""
    if found["all"]:
        if slash and int(step) > high - low:
            raise ValueError(f"{text!r}: a step of the {name} is at most {high - low}")
        yield f"{found['all']}{tail}"
        return
    first = _number(found["first"], name, low, high, words)
    last = first if found["last"] is None else _number(found["last"], name, low, high, words)
    if words is _DAYS and found["last"] and last == low < first:
        last = high  # Sunday, at the end of the week
    if last < first:
        raise ValueError(f"{text!r}: a range of the {name} must rise")
    if words is _DAYS and last == high:
        # Kubeflow knows Sunday as 0 alone.
        reached = range(first, high + 1, int(step)) if slash else range(first, high + 1)
        yield from dict.fromkeys(str(day % high) for day in reached)
    elif slash and int(step) > (last if found["last"] else high) - first:
        yield str(first)  # APScheduler refuses a step that leads out of its range at once
    elif found["last"] is None:
        yield f"{first}{tail}"
    else:
        yield f"{first}-{last}{tail}"


def _number(text: str, name: str, low: int, high: int, words: tuple[str, ...]) -> int:
    if text.lower() in words:
        return low + words.index(text.lower())
    if not _is_number(text) or not low <= int(text) <= high:
        raise ValueError(f"{text!r} is no {name} ({low} to {high})")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _is_step(text: str, high: int) -> bool:
    return _is_number(text) and 0 < int(text) <= high


def _comes(fields: list[str]) -> bool:
    """Whether there is such a day, as far as days and months are numbers."""
    *_, day, month, weekday = fields
    if not (_listed(day) and _listed(month)) or _listed(weekday):
        return True  # where both are given, either of the days is enough
    first = min(map(int, day.split(",")))
    return any(first <= _LONGEST[int(one) - 1] for one in month.split(","))


def _listed(field: str) -> bool:
    """Whether a field is numbers, and no range of them."""
    return all(map(_is_number, field.split(",")))
