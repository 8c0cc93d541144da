"""Decide whether to run: from the current data, earlier attempts and the conditions."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.components.common.run_record import FAILED, INTERRUPTED, KILLED, NOT_BLESSED, SUCCEEDED
from regard.pipeline.config import Config
from regard.pipeline.config.recorded import recorded_config
from regard.pipeline.config.schedule import ScheduleConfig
from regard.pipeline.runs.store import Run, runs_of
from regard.pipeline.scheduling import conditions
from regard.pipeline.scheduling.conditions import ConditionResult
from regard.pipeline.scheduling.settings import ScheduleSettings
from regard.pipeline.scheduling.snapshot import DataSnapshot, settings_digest, take_snapshot
from regard.pipeline.scheduling.state import DECIDED, UNFINISHED, Attempt, ScheduleState
from regard.pipeline.scheduling.triggers import parse_duration
from regard.pipeline.workspace import PipelinePaths

_MAX_WAIT_SECONDS = 86_400.0
_CLOCK_TOLERANCE_SECONDS = 60.0


@dataclass(frozen=True)
class ScheduleDecision:
    """The result of a check.

    Attributes:
        should_run: whether to run now.
        reason: why, or why not, in a sentence.
        snapshot: the current data.
        results: the results of the conditions, if they were evaluated.
        number: the number of the attempt with these data and settings, from 1.
        kills: how often the run was killed before.
        retry_at: when to check again before the next scheduled time, in seconds since 1970.
        manual_run: a run outside the schedule that trained on the current data, if it is newer than
            the last known training.
    """

    should_run: bool
    reason: str
    snapshot: DataSnapshot
    results: Sequence[ConditionResult] = ()
    number: int = 1
    kills: int = 0
    retry_at: float | None = None
    manual_run: str | None = None


def evaluate_trigger(
    settings: ScheduleSettings,
    paths: PipelinePaths,
    state: ScheduleState,
    now: float,
    save: bool = True,
) -> ScheduleDecision:
    """Check the data and decide whether to run.

    Data and settings that were tried to the end are not tried again, whatever the conditions. An
    interrupted run resumes.

    Args:
        settings: the pipeline's configuration and schedule.
        paths: the pipeline's folder.
        state: the schedule's state, which is not changed.
        now: seconds since 1970.
        save: whether to cache row counts and profiles.

    Raises:
        UserError: the data cannot be read.
    """
    config, schedule = settings.config, settings.schedule
    snapshot = take_snapshot(config, paths, schedule.new_rows is not None, save)
    last = state.attempt if state.attempt and state.attempt.key == snapshot.key else None
    decided = _find_decided_run(config, paths, snapshot)
    if decided is not None and (last is None or last.run != decided.id):
        version = decided.record().pushed_version
        end = f"pushed as {decided.name}@{version}" if version else "not pushed"
        reason = f"these data and settings were already used by run {decided.id}, which was {end}"
        manual_run = decided.id if _is_newer(decided, state) else None
        return ScheduleDecision(False, reason, snapshot, manual_run=manual_run)
    if last is not None and last.ended is None:
        return ScheduleDecision(
            False, "a run with these data and settings is in progress", snapshot
        )
    if last is not None:
        return _decide_retry(snapshot, last, schedule, now)
    results = []
    if schedule.new_span:
        results.append(conditions.check_new_span(snapshot, state.trained))
    if schedule.new_rows is not None:
        results.append(conditions.check_new_rows(snapshot, state.trained, schedule.new_rows))
    if schedule.drift:
        results.append(conditions.check_drift(snapshot, config, paths.schedule, save))
    if not results:
        return ScheduleDecision(True, "these data and settings have not been tried yet", snapshot)
    is_met = [result.is_met for result in results]
    should_run = any(is_met) if schedule.require == "any" else all(is_met)
    decisive = [r for r in results if r.is_met == should_run] or results
    return ScheduleDecision(should_run, "; ".join(map(str, decisive)), snapshot, results)


def retry_wait(last: Attempt, schedule: ScheduleConfig) -> float | None:
    """Return the seconds from the end of an attempt to the next; None if there is none."""
    if last.status == INTERRUPTED or (last.status == KILLED and not last.kills):
        return 0.0
    if last.status == KILLED:
        failures = last.kills
    elif last.status == FAILED and last.number < schedule.attempts:
        failures = last.number
    else:
        return None
    backoff = parse_duration(schedule.backoff).total_seconds()
    return min(backoff * 2.0 ** (failures - 1), _MAX_WAIT_SECONDS)


def _decide_retry(
    snapshot: DataSnapshot, last: Attempt, schedule: ScheduleConfig, now: float
) -> ScheduleDecision:
    """Decide on data and settings that the last attempt has tried."""
    outcome = f"{last.name}: {last.text}"
    wait = retry_wait(last, schedule)
    if wait is None:
        if last.status in DECIDED:
            return ScheduleDecision(False, f"nothing has changed since {outcome}", snapshot)
        if last.status == FAILED:
            outcome += f" (attempt {last.number} of {schedule.attempts})"
        reason = f"{outcome}; not retried with the same data and settings"
        return ScheduleDecision(False, reason, snapshot)
    assert last.ended is not None
    retry_at = last.ended + wait
    if now < retry_at and last.ended <= now + _CLOCK_TOLERANCE_SECONDS:  # else the clock went back
        return ScheduleDecision(False, f"{outcome}; retried later", snapshot, retry_at=retry_at)
    if last.status in UNFINISHED:
        kills = last.kills + 1 if last.status == KILLED else last.kills
        reason = f"resuming {last.name}, which was {last.status}"
        return ScheduleDecision(True, reason, snapshot, number=last.number, kills=kills)
    number = last.number + 1
    reason = f"attempt {number} of {schedule.attempts} after {outcome}"
    return ScheduleDecision(True, reason, snapshot, number=number, kills=last.kills)


def _find_decided_run(config: Config, paths: PipelinePaths, snapshot: DataSnapshot) -> Run | None:
    """Return the newest run with these data and settings that reached its decision."""
    digest = settings_digest(config)
    for run in reversed(runs_of(paths)):
        record = run.record()
        is_partial = record.first or record.last  # some nodes were left out
        if is_partial or record.status not in (SUCCEEDED, NOT_BLESSED):
            continue
        if record.data_fingerprint != snapshot.fingerprint:
            continue
        if record.word_vectors != snapshot.word_files:
            continue
        settings = recorded_config(run)
        if settings and settings_digest(settings) == digest:
            return run
    return None


def _is_newer(run: Run, state: ScheduleState) -> bool:
    """Return whether a run was started by hand after the last known training."""
    if run.id in {attempt.run for attempt in state.history}:
        return False
    if state.trained is None or state.trained.run is None:
        return True
    return run.id > state.trained.run
