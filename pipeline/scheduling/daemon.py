"""The scheduler process: wait for the next time, check the data, run, record the result.

It may be killed at any moment: the state is written before and after each run, and a run that
survives the scheduler is waited for at the next start.
"""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from regard.components.common.run_record import INTERRUPTED, NOT_BLESSED
from regard.components.registry.prune import prune
from regard.components.registry.store import Registry
from regard.core import locks
from regard.core.errors import EnvironmentFault, UserError
from regard.core.log_lines import LogLines
from regard.core.processes import ChildProcess, collect_stop_signals
from regard.pipeline.clean import clean
from regard.pipeline.runs import store
from regard.pipeline.scheduling import attempt as attempts
from regard.pipeline.scheduling import state as states
from regard.pipeline.scheduling.decision import ScheduleDecision, evaluate_trigger, retry_wait
from regard.pipeline.scheduling.settings import MISFIRE_GRACE_SECONDS, ScheduleSettings
from regard.pipeline.scheduling.state import Attempt, ScheduleState
from regard.pipeline.scheduling.triggers import format_time, parse_duration
from regard.pipeline.workspace import Workspace, lock_pipeline

LOCK = "lock"
_MAX_SLEEP_SECONDS = 60.0  # the clock may be set meanwhile
_RUN_POLL_SECONDS = 5.0
_SIGNAL_POLL_SECONDS = 0.5
_SUCCESS, _FAILURE, _USER_ERROR, _NOT_PUSHED, _INTERRUPTED = 0, 1, 2, 3, 130
_EXIT_STATUSES = {
    states.PUSHED: _SUCCESS,
    NOT_BLESSED: _NOT_PUSHED,
    states.REFUSED: _USER_ERROR,
}


class ScheduleDaemon:
    """Keeps the schedule of one pipeline.

    Args:
        settings: the configuration of the schedule.
        workspace: contains the pipeline's folder.
        print_line: prints a message.
        command: the command line of a run; None: ``regard run``.
        print_error: prints a message about what needs attention; None: ``print_line``.
        print_output: prints a line of a run's output, with the logs of its nodes; None: they are
            not printed.
    """

    def __init__(
        self,
        settings: ScheduleSettings,
        workspace: Workspace,
        print_line: Callable[[str], None],
        command: Sequence[str] | None = None,
        print_error: Callable[[str], None] | None = None,
        print_output: Callable[[str], None] | None = None,
    ):
        self.name = settings.config.name
        self.stop_signals: list[int] = []  # received signals that request a stop
        self._paths = workspace.pipeline(self.name)
        self._workspace = workspace
        self._settings = settings
        self._print_line = print_line
        self._print_error_line = print_error or print_line
        self._print_output = print_output
        is_verbose = print_output is not None
        self._command = list(command or attempts.run_command(settings.path.absolute(), is_verbose))
        self._state = ScheduleState()
        self._last_message = ""  # of the last check
        self._has_news = True  # something was printed since the next check was announced

    def now(self) -> float:
        """Return the time in seconds since 1970."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Wait; shorter if a stop is requested."""
        end = time.monotonic() + seconds
        while not self.stop_signals and (rest := end - time.monotonic()) > 0:
            time.sleep(min(rest, _SIGNAL_POLL_SECONDS))

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Take the lock, read the state, and collect SIGINT and SIGTERM instead of exiting.

        Raises:
            UserError: another process keeps the schedule, or its files cannot be read or written.
        """
        path, subject = self._paths.schedule / LOCK, f"The schedule of {self.name}"
        with lock_pipeline(path, subject=subject, remedy="Keep one schedule") as guard:
            try:
                guard.describe("of regard schedule")
                self._state = states.read_state(self._paths.schedule)
                if self._state.created is None:
                    self._state.created = self.now()
                    self._save()
                with collect_stop_signals() as self.stop_signals:
                    yield
            except BrokenPipeError:  # the reader of our output has ended
                raise
            except OSError as error:
                raise EnvironmentFault(
                    f"The schedule cannot be kept: {error.strerror or error}",
                    where=str(error.filename or self._paths.schedule),
                    remedy="Free disk space or correct the permissions, then start it again.",
                ) from error

    def serve(self) -> None:
        """Check the data at every scheduled time until a stop is requested."""
        last_error = ""
        while not self.stop_signals:
            try:
                self._step()
                last_error = ""
            except BrokenPipeError:
                raise
            except OSError as error:  # the disk may be full only for a while
                where = f"{error.filename}: " if error.filename else ""
                text = f"{where}{error.strerror or error}; retrying"
                if text != last_error:
                    self._print(text, is_error=True)
                last_error = text
                self._state.retry_at = self.now()
                self.sleep(_MAX_SLEEP_SECONDS)
        self._print_line("stopped")

    def run_once(self) -> int:
        """Check the data once if it is due, run if needed, and return the exit status.

        With a cron expression it is due if a time has passed since the last check, otherwise
        always.
        """
        self._finish_attempt()
        if self._settings.schedule.cron and self._next_check() > self.now():
            self._print("not due yet")
            self._announce_next()
            return _SUCCESS
        before = self._state.attempt and self._state.attempt.started
        decision = self._check()
        last = self._state.attempt
        if self.stop_signals:
            return _INTERRUPTED
        if last is None or last.started == before:
            return _SUCCESS if decision else _USER_ERROR
        return _EXIT_STATUSES.get(last.status, _FAILURE)

    def _next_check(self) -> float:
        """Return the next time to check. Times of the future count as now: the clock was set."""
        state, now = self._state, self.now()
        state.created = min(state.created or now, now)
        state.checked = state.checked and min(state.checked, now)
        scheduled = self._settings.next_check(state.checked, state.created, now)
        return scheduled if state.retry_at is None else min(scheduled, state.retry_at)

    def _step(self) -> None:
        """Check the data if it is due, then sleep."""
        if not self._finish_attempt():
            return
        now, due = self.now(), self._next_check()
        if due <= now:
            if self._settings.schedule.cron and due < now - MISFIRE_GRACE_SECONDS:
                missed = format_time(due, self._settings.zone)
                self._print(f"missed the check of {missed}; checking now")
            self._check()
        self._announce_next()
        self.sleep(min(_MAX_SLEEP_SECONDS, max(self._next_check() - self.now(), 0.0)))

    def _check(self) -> ScheduleDecision | None:
        """Check the data and run if needed; None if nothing could be decided."""
        now, state = self.now(), self._state
        decision = self._evaluate(now)
        if self.stop_signals:
            return None  # the next start checks again
        state.checked = now
        if decision is None:  # try again as after a failure
            backoff = parse_duration(self._settings.schedule.backoff)
            state.retry_at = now + backoff.total_seconds()
        else:
            action = "run" if decision.should_run else "no run"
            self._print_once("; ".join([f"{action}: {decision.reason}", *decision.snapshot.notes]))
            state.retry_at = decision.retry_at
            if decision.manual_run is not None:
                state.trained = decision.snapshot.trained_by(decision.manual_run)
        self._save()
        if decision is not None and decision.should_run:
            self._run(decision)
        return decision

    def _evaluate(self, now: float) -> ScheduleDecision | None:
        """Read the configuration and the data; None if one of them cannot be used.

        A configuration that cannot be used leaves the previous one in force.
        """
        subject = "configuration"
        try:
            self._settings.reload(self.name)
            subject = "data"
            return evaluate_trigger(self._settings, self._paths, self._state, now)
        except UserError as error:
            message = "; ".join(error.message.splitlines())
            where = f"{error.where}: " if error.where else ""
            text = f"the {subject} cannot be used: {where}{message}"
            self._print_once(text, is_error=True)
            return None

    def _finish_attempt(self) -> bool:
        """Wait for a run in progress, and record the result of an attempt that was left open.

        Returns:
            False if a stop was requested meanwhile.
        """
        is_waiting = False
        while self._is_running():
            if self.stop_signals:
                return False
            if not is_waiting:
                run = locks.read_holder(self._paths.lock).get("run")
                self._print(f"waiting for run {run}" if run else "waiting for a run")
                is_waiting = True
            self.sleep(_RUN_POLL_SECONDS)
        if (attempt := self._state.open_attempt) is not None:
            self._record_result(attempt)
        return True

    def _is_running(self) -> bool:
        if locks.is_locked(self._paths.lock):
            return True
        attempt = self._state.open_attempt
        return attempt is not None and attempts.is_alive(attempt)

    def _run(self, decision: ScheduleDecision) -> None:
        """Record an attempt, start a run, and wait for its end."""
        attempt = Attempt(
            key=decision.snapshot.key,
            number=decision.number,
            kills=decision.kills,
            started=time.time(),
            reason=decision.reason,
            data=decision.snapshot.trained_by(),
            earlier_runs=[run.id for run in store.runs_of(self._paths)],
        )
        state = self._state.model_copy(update={"attempt": attempt})
        states.write_state(self._paths.schedule, state)
        self._state = state
        process = attempts.start_run(self._command, self._paths.schedule, self._workspace.home)
        attempt.pid = process.pid
        with contextlib.suppress(OSError):  # even if the disk is full, the run continues
            self._save()
        self._record_result(attempt, self._wait_for_run(process, attempt))

    def _wait_for_run(self, process: ChildProcess, attempt: Attempt) -> int:
        """Wait for a run, which stop requests interrupt at most twice; return its exit status."""
        interrupts, is_announced = 0, False
        output = LogLines(self._paths.schedule / attempts.OUTPUT)
        while (status := process.wait(_SIGNAL_POLL_SECONDS)) is None:
            self._print_new(output)
            if self.stop_signals and not interrupts:
                self._print("stopping the run …")
            while interrupts < min(len(self.stop_signals), 2):
                process.send_signal(signal.SIGINT)
                interrupts += 1
            if not is_announced and not interrupts:
                run = attempts.find_run(self._paths, attempt)
                if is_announced := run is not None:
                    self._print(f"run {run.id} started; log: {run.log}")
        self._print_new(output, to_end=True)
        return status

    def _print_new(self, output: LogLines, to_end: bool = False) -> None:
        if self._print_output is not None:
            for line in output.new(to_end):
                self._print_output(line)

    def _record_result(self, attempt: Attempt, exit_status: int | None = None) -> None:
        """Record and print the outcome of an attempt."""
        state, now = self._state, self.now()
        finished = attempts.finish_attempt(self._paths, attempt, now, exit_status)
        if finished.status in states.DECIDED and attempt.data is not None:
            state.trained = attempt.data.model_copy(update={"run": finished.run})
        wait = retry_wait(finished, self._settings.schedule)
        state.retry_at = None if wait is None else now + wait
        if self._settings.schedule.cron is None:
            state.checked = now  # the interval begins at the end of a run
        state.attempt = finished
        state.history.append(finished)
        is_error = finished.status not in (states.PUSHED, NOT_BLESSED, INTERRUPTED)
        self._print(attempts.format_attempt(finished), is_error)
        self._save()
        self._clean()

    def _clean(self) -> None:
        """Remove old versions and runs as the schedule requests; an error stops nothing."""
        schedule, config = self._settings.schedule, self._settings.config
        try:
            registry = Registry(config.serving.registry or self._workspace.registry)
            if schedule.keep_versions and registry.versions(self.name):
                needed = store.needed_versions(self._workspace, registry.root / self.name)
                prune(registry, self.name, schedule.keep_versions, needed)
            if schedule.keep:
                clean(self._workspace, self.name, schedule.keep)
        except (UserError, OSError) as error:
            text = "old runs cannot be removed: " + str(error).replace("\n", " ")
            self._print(text, is_error=True)

    def _save(self) -> None:
        states.write_state(self._paths.schedule, self._state)

    def _print(self, text: str, is_error: bool = False) -> None:
        self._has_news = True
        (self._print_error_line if is_error else self._print_line)(text)

    def _print_once(self, text: str, is_error: bool = False) -> None:
        """Print the result of a check unless the previous check had the same."""
        if text != self._last_message:
            self._print(text, is_error)
        self._last_message = text

    def _announce_next(self) -> None:
        """Print the time of the next check after other messages, unless it is now."""
        due = self._next_check()
        if self._has_news and due > self.now() and not self.stop_signals:
            self._print_line(f"next check {format_time(due, self._settings.zone)}")
            self._has_news = False


def message_line(text: str, settings: ScheduleSettings) -> str:
    """Return the line of a message: the time, in the zone of the schedule, and the text."""
    return f"{format_time(time.time(), settings.zone)}  {text}"


def find_process(paths: Path) -> int | None:
    """Return the id of the process that keeps a schedule, by the schedule's folder."""
    path = paths / LOCK
    return locks.read_holder(path).get("pid") if locks.is_locked(path) else None
