"""What a schedule would do now, without doing it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from regard.pipeline.scheduling.conditions import ConditionResult
from regard.pipeline.scheduling.daemon import find_process
from regard.pipeline.scheduling.decision import evaluate_trigger
from regard.pipeline.scheduling.settings import ScheduleSettings
from regard.pipeline.scheduling.state import Attempt, read_state
from regard.pipeline.workspace import Workspace

_LIMIT = 5  # times and attempts


@dataclass(frozen=True)
class SchedulePlan:
    """The status of a schedule and the decision of a check. Times are in seconds since 1970.

    Attributes:
        name: the pipeline's name.
        process: id of the process that keeps the schedule, if any.
        checked: the last check.
        attempts: the last attempts, the newest first.
        retry_at: when it is retried before the next scheduled time.
        next: the next scheduled times; one that has passed was missed.
        notes: on spans that are left out.
        conditions: the results of the conditions.
        should_run: whether a check would run the pipeline now.
        reason: why, or why not.
    """

    name: str
    process: int | None
    checked: float | None
    attempts: list[Attempt]
    retry_at: float | None
    next: list[float]
    notes: Sequence[str]
    conditions: Sequence[ConditionResult]
    should_run: bool
    reason: str


def plan_schedule(settings: ScheduleSettings, workspace: Workspace) -> SchedulePlan:
    """Check the data as the scheduler would, and write nothing.

    Raises:
        UserError: the data cannot be read.
    """
    paths = workspace.pipeline(settings.config.name)
    state, now = read_state(paths.schedule), time.time()
    decision = evaluate_trigger(settings, paths, state, now, save=False)
    attempts = state.history + ([state.open_attempt] if state.open_attempt else [])
    times = [settings.next_check(state.checked, state.created, now)]
    while len(times) < _LIMIT:
        times.append(settings.next_time(max(times[-1], now)))
    return SchedulePlan(
        name=settings.config.name,
        process=find_process(paths.schedule),
        checked=state.checked,
        attempts=attempts[::-1][:_LIMIT],
        retry_at=state.retry_at if decision.retry_at is None else decision.retry_at,
        next=times,
        notes=decision.snapshot.notes,
        conditions=decision.results,
        should_run=decision.should_run,
        reason=decision.reason,
    )
