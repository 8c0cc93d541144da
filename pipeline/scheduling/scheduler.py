"""The loop: waits for its time, looks, runs and remembers; it may be killed at any moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from components.errors import UserError
from pipeline import lock, runs
from pipeline.scheduling import attempt, conditions, profile, state
from pipeline.scheduling.calendar import due, following, is_ahead, shown
from pipeline.scheduling.clock import Clock
from pipeline.scheduling.decision import Decision, decide, remembered, undecided_wait, wait_after
from pipeline.scheduling.settings import Settings
from pipeline.workspace import PipelinePaths, Workspace

_STEP = 30.0  # seconds: the longest sleep, as the file may say another time, or the clock be set
_RUN_POLL = 1.0
LOCK = "lock"
_STYLES = {state.PUSHED: "green", state.REFUSED: "red", runs.FAILED: "red"}


class View(Protocol):
    """What the user sees; ``live`` says whether what goes on can be shown."""

    live: bool

    def say(self, text: str, style: str = "") -> None:
        """A line that stays, with the time in front."""

    def show(self, text: str) -> None:
        """What goes on at this moment; empty: nothing."""


class Scheduler:
    """Keeps one schedule.

    Args:
        settings: the file, which was read.
        workspace: where the pipeline has its folder.
        view: is told what happens.
        clock: the time.
        command: the command line of a run; None: ``regard run``.
    """

    def __init__(
        self,
        settings: Settings,
        workspace: Workspace,
        view: View,
        clock: Clock,
        command: Sequence[str] | None = None,
    ):
        self.name = settings.config.name
        self.paths: PipelinePaths = workspace.pipeline(self.name)
        self._home = workspace.home
        self._settings = settings
        self._view = view
        self._clock = clock
        self._command = list(command or attempt.command(settings.path.absolute()))
        self._state = state.State()
        self._found = ""  # by the last look; the same is not said at each
        self._undecided = False  # by the last look, as the file or the data could not be used
        self._trouble = ""  # with the disk, which is said once, too
        self._news = True  # whether something was said since the next look was

    def keeper(self) -> int | None:
        """The process that keeps this schedule already, if there is one."""
        path = self.paths.schedule / LOCK
        return lock.holder(path).get("pid") if lock.is_held(path) else None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Takes the lock and the state: of each pipeline there is one scheduler.

        Raises:
            UserError: there is another one, or its files cannot be read or written.
        """
        with lock.acquire(self.paths.schedule / LOCK, refusal=refusal) as held:
            try:
                held.describe("schedule")
                self._state = state.read(self.paths.schedule)
                if self._state.since is None:
                    self._state.since = self._clock.now()
                    self._save()
                yield
            except BrokenPipeError:  # nobody reads any more what is said
                raise
            except OSError as error:
                raise UserError(
                    f"the schedule cannot be kept: {error.strerror or error}",
                    where=str(error.filename or self.paths.schedule),
                    remedy="Free some space or mend the permissions, then start it again: it goes "
                    "on.",
                ) from error

    def serve(self) -> None:
        """Looks whenever it is time, until somebody asks to stop."""
        if self._outlived(self._settle):
            self._say_next()
        while not self._clock.stops:
            if self._outlived(self._step):
                self._trouble = ""
            else:
                self._state.retry_at = self._clock.now()
                self._clock.sleep(_STEP)
        self._view.say("stopped")

    def _outlived(self, work: Callable[[], object]) -> bool:
        """Does a piece of work; False where the disk was full, or a file went: it may pass."""
        try:
            work()
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            text = f"{where}{error.strerror or error}; it is tried again"
            if text != self._trouble:
                self._say(text, "red")
            self._trouble = text
            return False
        return True

    def _step(self) -> None:
        """Looks, where it is time; else sleeps."""
        now = self._clock.now()
        self._mend_times(now)
        time = due(self._settings, self._state, now)
        if time.passed:
            self._say(time.passed)
        if time.look:
            self._look()
        elif time.passed:
            self._state.looked = now
            self._save()
        else:
            self._sleep(now)
            return
        self._say_next()

    def once(self) -> bool:
        """Looks once, and runs where that is due.

        Where there is a cron expression, only if one of its times has passed since the last look.

        Returns:
            False where the data or the settings cannot be used.
        """
        self._settle()
        self._mend_times(self._clock.now())
        if self._settings.schedule.cron is not None:
            time = due(self._settings, self._state, self._clock.now(), catchup=True)
            if not time.look:
                self._say("it is not time yet")
                self._say_next()
                return True
        return self._look() is not None

    @property
    def last(self) -> dict[str, Any] | None:
        """The last attempt."""
        return self._state.attempt

    def _mend_times(self, now: float) -> None:
        """Looks now where the last look lies in the future: nothing would be due until then."""
        known = self._state
        if not is_ahead(known, now):
            return
        last = shown(known.looked or known.since or now, self._settings.zone)
        self._say(f"the clock was set back: the last look was at {last}; it looks now", "yellow")
        known.since, known.looked, known.retry_at = min(known.since or now, now), now, now
        self._save()

    def _sleep(self, now: float) -> None:
        if self._settings.changed() and self._reread():
            self._say("the configuration was changed, and is read anew")
            if self._undecided:  # perhaps only for what is mended now
                self._state.retry_at = now
                return
            self._say_next()
            return
        coming = following(self._settings, self._state, now)
        self._clock.sleep(_STEP if coming is None else min(_STEP, coming - now))

    def _say(self, text: str, style: str = "") -> None:
        self._news = True
        self._view.say(text, style)

    def _say_once(self, text: str, style: str) -> None:
        """Says what a look has found, where the look before found something else."""
        if text != self._found:
            self._say(text, style)
        self._found = text

    def _say_next(self) -> None:
        """Says when the next look is, after anything else was said, unless it is at once."""
        now = self._clock.now()
        coming = following(self._settings, self._state, now)
        if self._news and coming is not None and coming > now and not self._clock.stops:
            self._view.say(f"next look {shown(coming, self._settings.zone)}", "dim")
            self._news = False

    def _look(self) -> Decision | None:
        """One look, and the run that it leads to; None where nothing could be decided."""
        if not self._settle():
            return None
        known, began = self._state, self._clock.now()
        decision = None
        if self._reread():
            try:
                decision = decide(
                    self._settings.config,
                    self._settings.schedule,
                    self.paths,
                    known,
                    began,
                    self._view.show,
                )
            except UserError as error:
                self._say_once(f"the data cannot be used: {_told(error)}", "red")
            finally:
                self._view.show("")
        if self._clock.stops:
            return None  # the next start looks again
        self._undecided = decision is None
        known.looked = began
        if decision is None:  # the time is not lost: it is looked again, as after a failure
            known.retry_at = began + undecided_wait(self._settings.schedule)
        else:
            self._take(decision)
        self._save()
        if decision is not None and decision.run:
            self._run(decision)
        return decision

    def _take(self, decision: Decision) -> None:
        """Tells what a look has found, and keeps what follows from it."""
        text = f"{'run' if decision.run else 'no run'}: {decision.text}"
        notes = "".join(f"; {note}" for note in decision.look.notes)
        self._say_once(f"{text}{notes}", "bold" if decision.run else "")
        self._state.retry_at = decision.retry_at
        if decision.by_hand is not None:
            self._trained_on(remembered(decision.look, decision.by_hand))

    def _reread(self) -> bool:
        """Reads the file anew; where that cannot be, says so, and what it said before stays."""
        try:
            name = self._settings.read().config.name
            if name != self.name:
                told = f"the name is {name} now, and was {self.name}"
                remedy = "Start a scheduler of its own for it."
                raise UserError(told, f"{self._settings.path}: name", remedy)
        except UserError as error:
            self._say_once(f"the configuration cannot be used: {_told(error)}", "red")
            return False
        return True

    def _settle(self) -> bool:
        """Waits for a run that goes on, and takes in how the last attempt has ended.

        Returns:
            False where somebody asks to stop meanwhile.
        """
        told = False
        while self._goes_on():
            if self._clock.stops:
                return False
            if not told:
                holder = lock.holder(self.paths.lock)
                name = f"run {holder['run']}" if holder.get("run") else "a run"
                self._say(f"waiting for {name}, which goes on")
                told = True
            self._clock.sleep(_RUN_POLL)
        if (tried := self._state.open) is not None:
            self._take_in(attempt.ending(self.paths, tried))
        return True

    def _goes_on(self) -> bool:
        tried = self._state.open
        return lock.is_held(self.paths.lock) or (tried is not None and attempt.is_alive(tried))

    def _run(self, decision: Decision) -> None:
        """Writes down what is tried, starts a run, and waits for its end."""
        tried: dict[str, Any] = {
            "key": decision.look.key,
            "number": decision.number,
            "kills": decision.kills,
            "started": attempt.now(),
            "reason": decision.text,
            "look": remembered(decision.look),
        }
        before, self._state.attempt = self._state.attempt, tried
        try:
            self._save()
        except OSError:
            self._state.attempt = before  # nothing was started
            raise
        process = attempt.start(self._command, self.paths.schedule, self._home)
        tried["pid"] = process.pid
        # Where that cannot be written the run goes on all the same, and we wait for it.
        self._outlived(self._save)
        with self._telling(tried) as tick:
            exit_status = attempt.follow(process, lambda: self._clock.stops, tick)
        self._take_in(attempt.ending(self.paths, tried, exit_status))

    @contextmanager
    def _telling(self, tried: dict[str, Any]) -> Iterator[Callable[[], None]]:
        """Gives what tells, when called, how a run goes on."""
        run: runs.Run | None = None
        stopping = False

        def tick() -> None:
            nonlocal run, stopping
            if run is None and (run := attempt.run_of(self.paths, tried)) is not None:
                self._say(f"run {run.id} has begun; its log: {run.log}", "dim")
            if self._clock.stops and not stopping:
                stopping = True
                self._say("stopping the run …")
            if self._view.live:
                self._view.show(f"run {run.id}  {attempt.doing(run)}" if run else "starting a run")

        try:
            yield tick
        finally:
            self._view.show("")

    def _take_in(self, ending: attempt.Ending) -> None:
        """Remembers how an attempt has ended, in one write, and tells it in one line."""
        known, now = self._state, self._clock.now()
        tried = dict(known.attempt or {})
        seen = tried.pop("look")
        tried.update(ending.to_json(), ended=now)
        if ending.status in state.DECIDED:
            self._trained_on({**seen, "run": ending.run})
        wait = wait_after(tried, self._settings.schedule)
        known.retry_at = None if wait is None else now + wait
        if self._settings.schedule.cron is None:
            known.looked = now  # the interval is one between runs
        known.attempt = tried
        known.history.append(tried)
        self._say(said(tried), _STYLES.get(ending.status, "yellow"))
        self._save()

    def _trained_on(self, seen: dict[str, Any]) -> None:
        """What is new from now on is held against these data."""
        self._state.trained = seen
        folder = self.paths.schedule
        profile.keep(folder / conditions.LOOKED, folder / conditions.TRAINED, seen["key"])

    def _save(self) -> None:
        state.write(self.paths.schedule, self._state)


def said(tried: Mapping[str, Any]) -> str:
    """One line on an attempt that has ended."""
    from pipeline.live import duration

    name = f"run {tried['run']}" if tried.get("run") else "the run"
    facts = [duration(tried["seconds"])] if tried.get("seconds") is not None else []
    if tried.get("exit_status") is not None:
        facts.append(f"status {tried['exit_status']}")
    return f"{name}: {tried['text']}" + (f" ({', '.join(facts)})" if facts else "")


def refusal(path: Path, holder: dict[str, Any]) -> UserError:
    """That another process keeps the schedule."""
    process = f"process {holder['pid']}" if holder.get("pid") else "another process"
    return UserError(
        f"the schedule of {path.parents[1].name} is kept by {process} already",
        where=str(path),
        remedy=f"Stop it with `kill {holder['pid']}`." if holder.get("pid") else None,
    )


def _told(error: UserError) -> str:
    """An error in one line."""
    message = "; ".join(error.message.splitlines())
    return f"{error.where}: {message}" if error.where else message
