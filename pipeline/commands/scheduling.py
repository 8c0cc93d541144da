"""What ``regard schedule`` does on this machine."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.commands import terminal

if TYPE_CHECKING:
    from pipeline.scheduling.settings import Settings

_NEXT = 5
OK, FAILED, WRONG, NOT_PUSHED, INTERRUPTED = 0, 1, 2, 3, 130


@dataclasses.dataclass(frozen=True)
class Request:
    """What the user asks for: the YAML file, and what goes before its section ``schedule``."""

    config: Path
    cron: str | None = None
    timezone: str | None = None
    every: str | None = None
    new_span: bool | None = None
    new_rows: int | None = None
    drift: bool | None = None
    require: str | None = None
    catchup: bool | None = None
    as_json: bool = False

    def settings(self) -> Settings:
        """The file with what was given.

        Raises:
            UserError: one of them is wrong.
        """
        from pipeline.scheduling.settings import Settings

        names = {field.name for field in dataclasses.fields(self)} - {"config", "as_json"}
        given = {name: getattr(self, name) for name in names}
        return Settings(
            self.config, {name: value for name, value in given.items() if value is not None}
        ).read()

    def options(self) -> list[str]:
        """The same as a command line, for a unit."""
        words: list[str] = []
        for option, value in (
            ("--cron", self.cron),
            ("--time-zone", self.timezone),
            ("--every", self.every),
            ("--new-rows", self.new_rows),
            ("--require", self.require),
        ):
            words += [] if value is None else [option, str(value)]
        for option, wanted in (("new-span", self.new_span), ("drift", self.drift)):
            words += [] if wanted is None else [f"--{'' if wanted else 'no-'}{option}"]
        return words + (["--no-catchup"] if self.catchup is False else [])


def keep(request: Request, once: bool = False) -> int:
    """Keeps a schedule until somebody stops it, or looks once; returns the exit status.

    Raises:
        UserError: the configuration is wrong, or the schedule is kept already.
    """
    from pipeline import runs
    from pipeline.commands.schedule_views import LineView, described
    from pipeline.scheduling import state
    from pipeline.scheduling.clock import Clock
    from pipeline.scheduling.scheduler import Scheduler
    from pipeline.workspace import Workspace

    settings = request.settings()
    view, clock = LineView(terminal.out(), settings), Clock()
    scheduler = Scheduler(settings, Workspace.from_environment(), view, clock)
    if once and (keeper := scheduler.keeper()) is not None:
        view.say(f"process {keeper} looks after it")
        return OK
    with scheduler.held(), clock.listening():
        if not once:
            view.say(f"{scheduler.name} {described(settings.schedule, settings.zone)}", "bold")
            scheduler.serve()
            return OK
        before = scheduler.last and scheduler.last.get("started")
        understood = scheduler.once()
        if clock.stops:
            return INTERRUPTED
        tried = scheduler.last or {}
        if tried.get("started") == before:
            return OK if understood else WRONG
    return {state.PUSHED: OK, runs.NOT_BLESSED: NOT_PUSHED, state.REFUSED: WRONG}.get(
        tried["status"], FAILED
    )


def plan(request: Request) -> None:
    """Prints the next times, what every condition finds now, and what a look would lead to."""
    import time

    from pipeline import lock
    from pipeline.commands import schedule_views
    from pipeline.scheduling import state
    from pipeline.scheduling.calendar import coming, due
    from pipeline.scheduling.decision import decide
    from pipeline.scheduling.scheduler import LOCK
    from pipeline.workspace import Workspace

    settings = request.settings()
    paths = Workspace.from_environment().pipeline(settings.config.name)
    known, now = state.read(paths.schedule), time.time()
    with terminal.working("looking …") as say:
        decision = decide(settings.config, settings.schedule, paths, known, now, say, keep=False)
    guard = paths.schedule / LOCK
    told = {
        "name": settings.config.name,
        "sentence": schedule_views.described(settings.schedule, settings.zone),
        "time_zone": str(settings.zone),
        "now": now,
        "kept_by": lock.holder(guard).get("pid") if lock.is_held(guard) else None,
        "looked": known.looked,
        "last": known.attempt and {k: v for k, v in known.attempt.items() if k != "look"},
        "passed": due(settings, known, now).passed,
        "next": coming(settings, known, now, _NEXT),
        "notes": decision.look.notes,
        "findings": [finding.to_json() for finding in decision.findings],
        "run": decision.run,
        "why": decision.text,
        "retry_at": known.retry_at if decision.retry_at is None else decision.retry_at,
    }
    if request.as_json:
        terminal.print_json(told)
    else:
        schedule_views.print_plan(told, settings.zone, terminal.out())


def history(request: Request) -> None:
    """Prints what was tried, the newest first."""
    from pipeline.commands import schedule_views
    from pipeline.config import load
    from pipeline.scheduling import state
    from pipeline.scheduling.times import zone_of
    from pipeline.workspace import Workspace

    config = load(request.config)
    paths = Workspace.from_environment().pipeline(config.name)
    records = list(reversed(state.read(paths.schedule).history))
    if request.as_json:
        terminal.print_json(records)
    elif not records:
        terminal.out().print(f"The schedule of {config.name} has not run anything yet.")
    else:
        zone = zone_of(config.schedule.timezone if config.schedule else None)
        schedule_views.print_history(records, zone, terminal.out())


def write_unit(request: Request, output: str | None, force: bool) -> None:
    """Writes a systemd unit, or prints it where the output is ``-``."""
    from pipeline.commands import schedule_views
    from pipeline.scheduling import unit
    from pipeline.workspace import Workspace

    name = request.settings().config.name
    text = unit.unit(name, request.config, request.options(), Workspace.from_environment())
    if output == "-":
        terminal.out().print(text, end="", soft_wrap=True)
        return
    path = Path(output).absolute() if output else unit.place(name)
    unit.write(path, text, force)
    commands = unit.commands(path)
    if path != unit.place(name):
        commands.insert(0, f"systemctl --user link {shlex.quote(str(path))}")
    schedule_views.print_unit(str(path), commands, terminal.out())
