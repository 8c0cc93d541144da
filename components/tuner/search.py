"""``tuner_fn``: what TFX's Tuner calls; and the search that it gives back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_tuner.engine.base_tuner import BaseTuner
from keras_tuner.engine.trial import Trial, TrialStatus
from tfx.components.tuner.component import TunerFnResult

from components import events
from components.errors import UserError
from components.trainer.training import Source
from components.tuner import oracles
from components.tuner.journal import DONE, FAILED, Journal, Result
from components.tuner.pool import Pool
from components.tuner.space import Space, with_values
from components.tuner.trial import Task, checkpoints
from components.tuner.watching import NODE, Watch, tell_end

_LOOK_SECONDS = 0.5


def tuner_fn(fn_args: Any) -> TunerFnResult:
    """The search that a ``custom_config`` describes.

    Args:
        fn_args: TFX's ``FnArgs``. ``custom_config`` is what ``run_fn`` takes, without
            ``checkpoints``, with ``tune`` and ``space`` as `Search` takes them, and ``folder``,
            which outlives the run: a killed search goes on from there.
    """
    config = dict(fn_args.custom_config)
    source = Source(
        list(fn_args.train_files), list(fn_args.eval_files), fn_args.transform_graph_path
    )
    tune, space, folder = (config.pop(name) for name in ("tune", "space", "folder"))
    search = Search(config, source, tune, Space.of(space), Path(folder), fn_args.working_dir)
    return TunerFnResult(tuner=search, fit_kwargs={})


class Search(BaseTuner):
    """Asks an oracle for values, trains with them in processes of their own, tells it the scores.

    Args:
        config: as ``run_fn`` takes it.
        source: the rows.
        tune: what `oracles.make` takes, ``minutes`` (or null) for each trial, ``parallel``,
            how many run at once, ``threads`` of each, and ``failures``, so many of which one
            after the other end the search.
        space: what is searched.
        folder: of this search's journal and trials.
        scratch: for KerasTuner's own files, which nobody reads.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        source: Source,
        tune: Mapping[str, Any],
        space: Space,
        folder: Path,
        scratch: str,
    ):
        super().__init__(oracles.make(tune, space), directory=scratch, project_name="oracle")
        self.config, self.source, self.tune, self.space = config, source, tune, space
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.journal = Journal(folder / "journal.json")
        begun = sum(1 for _ in self.journal.trials())  # perhaps more than are wanted now
        self.oracle.max_trials = max(self.oracle.max_trials, begun)
        self._trials: dict[int, Trial] = {}

    def search(self, *_: Any, **__: Any) -> None:
        """Runs trials until the oracle wants no more; those that the journal has are not run again.

        Raises:
            UserError: too many failed.
        """
        waiting = self._replay()
        pool, watch = Pool(), Watch(self.oracle.max_trials)
        exhausted = False
        try:
            while True:
                while len(pool) < self.tune["parallel"] and not exhausted:
                    trial = waiting.pop(0) if waiting else self._next()
                    if trial is None:
                        break
                    exhausted = trial.status == TrialStatus.STOPPED
                    if not exhausted:
                        pool.start(int(trial.trial_id), self._task(trial))
                if not len(pool):
                    break
                for number, result in pool.ended(_LOOK_SECONDS):
                    self._end(number, result)
                watch.tell(self.results(), pool.tasks())
        finally:
            pool.kill()
        if all(result is None or result.state == FAILED for _, _, result in self.journal.trials()):
            raise self._failure("every trial failed")
        for number in self._trials:
            shutil.rmtree(checkpoints(self._folder(number)), ignore_errors=True)

    def results(self) -> list[dict[str, Any]]:
        """One row a trial, in the order in which they began."""
        rows = []
        for number, drawn, result in self.journal.trials():
            before = drawn.get(oracles.CONTINUED)
            rows.append(
                {
                    "trial": number + 1,
                    "continues": None if before is None else int(before) + 1,
                    "values": self.space.values(drawn),
                    **(vars(result) if result else {"state": "interrupted"}),
                }
            )
        return rows

    def _replay(self) -> list[Trial]:
        """Does again what the journal tells, and gives the trials that have no end yet."""
        forgiven = self.journal.forgive()
        done = 0
        for event in self.journal.events:
            number = event["number"]
            if event["event"] == "begin":
                # The oracle's own state goes on as it did; the journal has the last word on the
                # values, since another release may draw others.
                trial = self.oracle.create_trial(f"{number}")
                trial.hyperparameters.values = dict(event["drawn"])
                self._trials[number] = trial
            else:
                done += 1
                self._tell(number, Result(**event["result"]))
        left = [number for number, _, result in self.journal.trials() if result is None]
        if done or left:
            again = f", {forgiven} of them failed before" if forgiven else ""
            text = f"goes on: {done} trials are done, {len(left)} begun{again}"
            events.emit("note", node=NODE, text=text)
        return [self._trials[number] for number in left]

    def _next(self) -> Trial | None:
        """A new trial, or one that says that there is none; None: not before another has ended."""
        number = len(self._trials)
        trial = self.oracle.create_trial(f"{number}")
        if trial.status == TrialStatus.RUNNING:
            trial.hyperparameters.values = self.space.rounded(trial.hyperparameters.values)
            self.journal.begin(number, trial.hyperparameters.values)
            self._trials[number] = trial
        return None if trial.status == TrialStatus.IDLE else trial

    def _task(self, trial: Trial) -> Task:
        """What the trial's process is told."""
        folder = self._folder(int(trial.trial_id))
        drawn = trial.hyperparameters.values
        limits = {
            "max_epochs": drawn.get(oracles.EPOCHS, self.tune["epochs"]),
            "max_minutes": self.tune["minutes"],
        }
        given = {f"training.{key}": limit for key, limit in limits.items() if limit is not None}
        config = with_values(self.config, {**self.space.values(drawn), **given})
        before = drawn.get(oracles.CONTINUED)
        return Task(
            folder=str(folder),
            config={**config, "checkpoints": str(checkpoints(folder))},
            source=self.source,
            objective=self.tune["objective"],
            continued=None if before is None else str(self._folder(int(before))),
            threads=self.tune["threads"],
        )

    def _end(self, number: int, result: Result) -> None:
        self.journal.end(number, result)
        self._tell(number, result)
        if self.tune["algorithm"] != "hyperband" and result.state == DONE:
            shutil.rmtree(checkpoints(self._folder(number)), ignore_errors=True)
        tell_end(self.results(), number + 1, self.tune)
        if len(list(self._last_failures())) >= self.tune["failures"]:
            raise self._failure(f"{self.tune['failures']} trials failed one after the other")

    def _tell(self, number: int, result: Result) -> None:
        """Tells the oracle how a trial ended."""
        trial = self._trials[number]
        if result.state == DONE:
            self.oracle.update_trial(trial.trial_id, {self.oracle.objective.name: result.score})
            trial.status = TrialStatus.COMPLETED
        else:
            trial.status, trial.message = TrialStatus.FAILED, result.error
        self.oracle.end_trial(trial)

    def _last_failures(self) -> Iterator[dict[str, Any]]:
        """The ends of trials after the last success, the newest first."""
        for event in reversed(self.journal.events):
            if event["event"] == "end":
                if event["result"]["state"] != FAILED:
                    return
                yield event

    def _failure(self, what: str) -> UserError:
        last = next(self._last_failures())
        number = last["number"]
        return UserError(
            f"{what}; the last one, trial {number + 1}: {last['result']['error']}",
            where="tune.over",
            remedy=f"Its log is {self._folder(number) / 'log.txt'}. Mend the reason, or narrow the "
            "ranges; the same command then tries the failed ones again.",
        )

    def _folder(self, number: int) -> Path:
        return self.folder / f"trial-{number + 1}"
