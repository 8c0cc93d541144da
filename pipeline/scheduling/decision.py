"""Whether to run now, and why: from what lies there, what was tried, and the conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline import runs
from pipeline.config import restored
from pipeline.scheduling import attempt, conditions, profile
from pipeline.scheduling.calendar import LATE
from pipeline.scheduling.conditions import Finding
from pipeline.scheduling.look import Look, look, settings_digest
from pipeline.scheduling.state import DECIDED, UNFINISHED, State
from pipeline.scheduling.times import seconds_in
from pipeline.workspace import PipelinePaths

if TYPE_CHECKING:
    from pipeline.config import Config
    from pipeline.config.schedule import Schedule

_MOST_SECONDS = 86_400.0  # to wait for another attempt, however often it was killed


@dataclass(frozen=True)
class Decision:
    """What a look leads to.

    Attributes:
        run: whether to run now.
        text: why, or why not, in a sentence.
        look: what lies there.
        findings: of the conditions, as far as they decide.
        number: of the attempt at these data and settings, from 1.
        kills: how often it was killed before.
        retry_at: when to look again without waiting for the next time, in seconds since 1970.
        by_hand: the run outside of the schedule that has trained on the same, if it is newer than
            the last training that is known.
    """

    run: bool
    text: str
    look: Look
    findings: Sequence[Finding] = ()
    number: int = 1
    kills: int = 0
    retry_at: float | None = None
    by_hand: str | None = None


def decide(
    config: Config,
    schedule: Schedule,
    paths: PipelinePaths,
    state: State,
    now: float,
    tell: Callable[[str], None] = lambda _: None,
    keep: bool = True,
) -> Decision:
    """Looks at the data, and decides.

    What was tried to its end with these very data and settings is not tried again, whatever the
    conditions say; what was interrupted goes on.

    Args:
        config: the pipeline's.
        schedule: with the conditions.
        paths: of the pipeline's folder.
        state: what was tried before; it is not changed.
        now: seconds since 1970.
        tell: called with what is being done.
        keep: whether what was counted and measured is kept for later looks.

    Raises:
        UserError: the data cannot be looked at.
    """
    tell("looking at the data …")
    seen = look(config, paths, count=schedule.new_rows is not None, keep=keep)
    tried = state.attempt if state.attempt and state.attempt["key"] == seen.key else None
    decided = _decided(config, paths, seen)
    if decided is not None and (tried is None or tried.get("run") != decided.id):
        text = f"the same was tried in run {decided.id}, which {_said(decided)}"
        by_hand = decided.id if _is_newer(decided, state) else None
        if by_hand is not None and schedule.drift is not None and keep:  # it is measured from it
            profile.remembered(seen.data, seen.key, paths.schedule / conditions.LOOKED)
        return Decision(False, text, seen, by_hand=by_hand)
    if tried is not None and "ended" not in tried:
        return Decision(False, "these very data and settings are being tried", seen)
    if tried is not None:
        return _again(seen, tried, schedule, now)
    tell("looking for what is new …")
    findings = list(_findings(config, schedule, paths, state, seen, keep))
    if not findings:
        before = "it has not been tried with these data and settings yet"
        return Decision(True, before, seen)
    holding = [finding for finding in findings if finding.holds]
    enough = bool(holding) if schedule.require == "any" else len(holding) == len(findings)
    deciding = findings
    if enough != (schedule.require == "all"):
        deciding = [finding for finding in findings if finding.holds == enough]
    return Decision(enough, "; ".join(map(str, deciding)), seen, findings)


def wait_after(tried: Mapping[str, Any], schedule: Schedule) -> float | None:
    """Seconds from the end of an attempt to the next one at the same; None where there is none."""
    status, number, kills = tried["status"], tried["number"], tried["kills"]
    backoff = seconds_in(schedule.backoff)
    if status == runs.INTERRUPTED or (status == runs.KILLED and not kills):
        return 0.0
    if status == runs.KILLED:  # and the time before: perhaps by what it needs itself
        return min(backoff * 2.0 ** (kills - 1), _MOST_SECONDS)
    if status == runs.FAILED and number < schedule.attempts:
        return min(backoff * 2.0 ** (number - 1), _MOST_SECONDS)
    return None


def undecided_wait(schedule: Schedule) -> float:
    """Seconds to the next look where the configuration or the data could not be used."""
    return min(seconds_in(schedule.backoff), _MOST_SECONDS)


def _again(seen: Look, tried: Mapping[str, Any], schedule: Schedule, now: float) -> Decision:
    """What was tried last is there again."""
    number, status, kills = tried["number"], tried["status"], tried["kills"]
    what = f"run {tried['run']}" if tried.get("run") else "the last run"
    ended = f"{what}: {tried['text']}"
    wait = wait_after(tried, schedule)
    if wait is None:
        if status in DECIDED:
            return Decision(False, f"nothing has changed since {ended}", seen)
        last = f"; that was attempt {number} of {schedule.attempts}"
        often = last if status == runs.FAILED else ""
        return Decision(
            False, f"{ended}{often}; it is not tried again with the same data and settings", seen
        )
    if status in UNFINISHED:
        text, kills = f"{what} was {status}, and goes on", kills + (status == runs.KILLED)
    else:
        number += 1
        text = f"attempt {number} of {schedule.attempts}, since {ended}"
    at = tried["ended"] + wait
    if now < at and tried["ended"] <= now + LATE:  # else the clock was set back
        return Decision(False, f"{ended}; it is tried again later", seen, retry_at=at)
    return Decision(True, text, seen, number=number, kills=kills)


def _decided(config: Config, paths: PipelinePaths, seen: Look) -> runs.Run | None:
    """The newest run, whoever started it, that came to its decision on the same as lies there."""
    digest = settings_digest(config)
    for run in reversed(runs.runs_of(paths)):
        record = run.record()
        if record.get("data_fingerprint") != seen.fingerprint or not attempt.is_whole(run):
            continue
        if (record.get("word_vectors") or {}) != seen.words:
            continue
        if record.get("status") in (runs.SUCCEEDED, runs.NOT_BLESSED) and _settings(run) == digest:
            return run
    return None


def _is_newer(run: runs.Run, state: State) -> bool:
    """Whether a run is none of the schedule's own, and began after the last training known."""
    if run.id in {tried.get("run") for tried in state.history}:
        return False
    return run.id > ((state.trained or {}).get("run") or "")


def _settings(run: runs.Run) -> str | None:
    """The digest of the settings that a run had; None where they are of another version."""
    try:
        return settings_digest(restored(run.settings()))
    except (ValueError, LookupError):
        return None


def _said(run: runs.Run) -> str:
    record = run.record()
    if record.get("status") == runs.SUCCEEDED:
        return f"was pushed as {run.name}@{record.get('pushed_version')}"
    return "was not pushed"


def _findings(
    config: Config,
    schedule: Schedule,
    paths: PipelinePaths,
    state: State,
    seen: Look,
    keep: bool,
) -> Iterator[Finding]:
    if schedule.new_span:
        yield conditions.new_span(seen, state.trained)
    if schedule.new_rows is not None:
        yield conditions.new_rows(seen, state.trained, schedule.new_rows)
    if schedule.drift is not None:
        limits = schedule.drift.by_check(config.data.checks)
        yield conditions.drifted(seen, config, limits, paths.schedule, keep)


def remembered(seen: Look, run: str | None = None) -> dict[str, Any]:
    """What later looks are held against, once it is trained on, by a run where one is known."""
    return {"key": seen.key, "groups": seen.groups, "spans": seen.spans, "run": run}
