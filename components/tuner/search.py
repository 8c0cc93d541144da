"""``tuner_fn``: what TFX's Tuner calls; and the search that it gives back."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_tuner.engine.base_tuner import BaseTuner
from tfx.components.tuner.component import TunerFnResult

from components import events
from components.errors import UserError
from components.trainer.training import Source
from components.tuner import oracles
from components.tuner.journal import DONE, Journal, Result
from components.tuner.pool import Pool
from components.tuner.space import Space, with_values
from components.tuner.trial import Task, checkpoints
from components.tuner.trials import Trials
from components.tuner.watching import NODE, Watch, tell_end

_LOOK_SECONDS = 0.5
_KEPT = 2  # other searches whose checkpoints stay


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
        self.trials = Trials(self.oracle, space, Journal(folder / "journal.json"))

    def search(self, *_: Any, **__: Any) -> None:
        """Runs trials until the oracle wants no more; those that are done are not run again.

        Raises:
            UserError: too many failed.
        """
        trials, waiting = self.trials, list(self.trials.waiting)
        self._tell_beginning()
        self._prune_others()
        pool, watch = Pool(), Watch(self.oracle.max_trials)
        try:
            while True:
                while len(pool) < self.tune["parallel"] and not trials.exhausted:
                    number = waiting.pop(0) if waiting else trials.begin()
                    if number is None:
                        break
                    pool.start(number, self._task(number))
                if not len(pool):
                    break
                watch.tell(trials.rows(), pool.tasks())
                for number, result in pool.ended(_LOOK_SECONDS):
                    self._end(number, result)
        finally:
            pool.kill()
        if all(row["state"] != DONE for row in trials.rows()):
            raise self._failure("no trial has come to its end")
        for number in range(len(trials)):
            self._forget(number)

    def _tell_beginning(self) -> None:
        trials = self.trials
        begun = len(trials.waiting) - trials.forgiven
        done = len(trials) - len(trials.waiting)
        told = {"done": done, "interrupted": begun, "failed, and tried again": trials.forgiven}
        if len(trials):
            text = ", ".join(f"{count} {what}" for what, count in told.items() if count)
            events.emit("note", node=NODE, text=f"goes on; of its trials {text}")

    def _task(self, number: int) -> Task:
        """What the trial's process is told."""
        folder, drawn = self._folder(number), self.trials.drawn(number)
        limits = {
            "max_epochs": drawn.get(oracles.EPOCHS, self.tune["epochs"]),
            "max_minutes": self.tune["minutes"],
            "devices": "one",  # trials are what is done side by side
        }
        given = {f"training.{key}": limit for key, limit in limits.items() if limit is not None}
        config = with_values(self.config, {**self.space.settings(drawn), **given})
        before = self.trials.continued(number)
        return Task(
            folder=str(folder),
            config={**config, "checkpoints": str(checkpoints(folder))},
            source=self.source,
            objective=self.tune["objective"],
            continued=None if before is None else str(self._folder(before)),
            threads=self.tune["threads"],
        )

    def _end(self, number: int, result: Result) -> None:
        self.trials.end(number, result)
        if self.tune["algorithm"] != "hyperband" and result.state == DONE:
            self._forget(number)
        tell_end(self.trials.rows(), number + 1, self.tune)
        if len(self.trials.failures()) >= self.tune["failures"]:
            raise self._failure(f"{self.tune['failures']} trials failed one after the other")

    def _failure(self, what: str) -> UserError:
        number, result = self.trials.failures()[-1]
        return UserError(
            f"{what}; the last one, trial {number + 1}: {result.error}",
            where="tune.over",
            remedy=f"Its log is {self._folder(number) / 'log.txt'}. Mend the reason, or narrow the "
            "ranges; the same command then tries the failed ones again.",
        )

    def _forget(self, number: int) -> None:
        """Removes a trial's checkpoints, which no trial will go on with."""
        shutil.rmtree(checkpoints(self._folder(number)), ignore_errors=True)

    def _prune_others(self) -> None:
        """Removes the checkpoints of older searches beside this one, but for the newest few.

        Their journals stay: only trials that were interrupted would have to begin anew.
        """
        journals = set(self.folder.parent.glob("*/journal.json")) - {self.folder / "journal.json"}
        newest = sorted(journals, key=lambda path: path.stat().st_mtime, reverse=True)
        for journal in newest[_KEPT:]:
            for trial in journal.parent.glob("trial-*"):
                shutil.rmtree(checkpoints(trial), ignore_errors=True)

    def _folder(self, number: int) -> Path:
        return self.folder / f"trial-{number + 1}"
