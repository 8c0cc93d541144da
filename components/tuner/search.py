"""``tuner_fn``, which TFX's Tuner calls, and the KerasTuner tuner that it returns."""

import contextlib
import json
from pathlib import Path
from typing import Any

import keras_tuner
from keras_tuner import errors, oracles
from keras_tuner.engine.base_tuner import BaseTuner
from keras_tuner.engine.trial import Trial, TrialStatus
from pydantic import BaseModel, ConfigDict
from tfx.components.tuner.component import TunerFnResult

from regard.components.settings.trainer import RunInputs, TrainingData
from regard.components.settings.tune import DEFAULT_FACTOR, DEFAULT_TRIALS, TuneConfig
from regard.components.tuner import trial_table
from regard.components.tuner.space import SearchSpace, replace_values
from regard.components.tuner.trial import (
    TrialResult,
    TrialTask,
    checkpoint_folder,
    read_result,
    read_state,
    run_trial,
    write_state,
)
from regard.core import events, owned_folders
from regard.core.errors import UserError
from regard.models.metrics import METRICS

NODE = "Tuner"
# Hyperparameters that Hyperband adds to those of the space.
_EPOCHS, _CONTINUED = "tuner/epochs", "tuner/trial_id"
_STATES = {TrialStatus.COMPLETED: trial_table.COMPLETED, TrialStatus.FAILED: trial_table.FAILED}


class TunerSettings(BaseModel):
    """What a search needs to know.

    Attributes:
        config: a ``TrainerConfig`` as JSON values, which each trial changes.
        run: what the run adds to the settings, without a folder for checkpoints.
        code: the digest of the code that searches, for TFX's cache.
        tune: the section ``tune``; its objective is not None.
        space: the search space.
        folder: the folder of the search, which outlives a run: a killed search resumes from it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    config: dict[str, Any]
    run: RunInputs
    code: str = ""
    tune: TuneConfig
    space: SearchSpace
    folder: str


def tuner_fn(fn_args: Any) -> TunerFnResult:
    """Create the search that TFX's ``FnArgs`` describe; ``custom_config`` is a `TunerSettings`."""
    settings = TunerSettings.model_validate_json(json.dumps(fn_args.custom_config))
    search = TrialSearch(settings, TrainingData.from_fn_args(fn_args))
    return TunerFnResult(tuner=search, fit_kwargs={})


class TrialSearch(BaseTuner):
    """Runs trials one after another; KerasTuner saves them, and reloads them after a restart."""

    def __init__(self, settings: TunerSettings, source: TrainingData):
        folder = Path(settings.folder)
        self.tune, self._settings, self._source = settings.tune, settings, source
        owned_folders.create(folder, owned_folders.SEARCH)
        for path in (*folder.glob("*.json"), *folder.glob("trial_*/trial.json")):
            read_state(path)  # KerasTuner raises errors of many kinds for damaged files
        super().__init__(
            create_oracle(settings.tune, settings.space),
            directory=str(folder.parent),
            project_name=folder.name,
        )
        if isinstance(self.oracle, oracles.HyperbandOracle):
            # May have been raised since the search was saved.
            self.oracle.hyperband_iterations = settings.tune.iterations or 1

    def on_search_begin(self) -> None:
        """Report what a resumed search has, and save, so that a kill can be survived from now."""
        if self.oracle.start_order:
            states = [row["state"] for row in self.rows()]
            completed, failed = map(states.count, (trial_table.COMPLETED, trial_table.FAILED))
            counts = f"{completed} trials completed, {failed} failed"
            events.emit("note", node=NODE, text=f"resuming the search: {counts}")
        self.save()

    def run_trial(self, trial: Trial, *_: Any, **__: Any) -> dict[str, float]:
        """Train with the values of a trial and return its score."""
        values = trial.hyperparameters.values
        values.update(self._settings.space.round(values))
        ended, count = len(self.oracle.end_order), self.oracle.max_trials
        furthest = 0.0

        def report(text: str, fraction: float) -> None:
            nonlocal furthest
            furthest = max(furthest, fraction)
            details = f"trial {int(trial.trial_id)}{f': {text}' if text else ''}"
            events.emit(
                "progress",
                node=NODE,
                text=f"{ended} of {count} trials · {details}",
                fraction=min(1.0, (ended + furthest) / count),
            )

        report("", 0.0)
        result = run_trial(self._task(trial), report)
        if result.score is None:
            raise errors.FailedTrialError(result.error)
        return {self.oracle.objective.name: result.score}

    def on_trial_end(self, trial: Trial) -> None:
        """Save the trial, report it, and stop the search after too many failed trials."""
        self._report(trial)
        try:
            super().on_trial_end(trial)
        except RuntimeError as error:  # KerasTuner's limit; this trial is run again on a restart
            raise UserError(
                f"{self.oracle.max_consecutive_failed_trials} consecutive trials failed; the last "
                f"one, trial {int(trial.trial_id)}: {self._result(trial).error}",
                where="tune.search_space",
                remedy=f"See its log, {self.get_trial_dir(trial.trial_id)}/log.txt. Fix the cause "
                "or narrow the ranges, then run the same command to try this trial again.",
            ) from error
        if self.tune.algorithm != "hyperband" and trial.status == TrialStatus.COMPLETED:
            self._delete_checkpoints(trial.trial_id)

    def on_search_end(self) -> None:
        """Delete all checkpoints, which no further trial needs.

        Raises:
            UserError: no trial completed.
        """
        if not any(row["state"] == trial_table.COMPLETED for row in self.rows()):
            raise UserError(
                "No trial of the search completed.",
                where="tune.search_space",
                remedy=f"See the logs in {self.project_dir}. Fix the cause or change the ranges; "
                "`--restart` runs all trials again.",
            )
        for trial_id in self.oracle.start_order:
            self._delete_checkpoints(trial_id)

    def save(self) -> None:
        """Save the oracle, and mark the search as one that can be reloaded."""
        self.oracle.save()
        write_state(self._get_tuner_fname(), self.get_state())

    def rows(self) -> list[trial_table.TrialRow]:
        """Return one row for each trial, in the order in which they started."""
        return [self._row(self.oracle.get_trial(key)) for key in self.oracle.start_order]

    def _row(self, trial: Trial) -> trial_table.TrialRow:
        result = self._result(trial)
        before = trial.hyperparameters.values.get(_CONTINUED)
        return {
            "trial": int(trial.trial_id),
            "continued_from": None if before is None else int(before),
            "state": _STATES.get(trial.status, trial_table.RUNNING),
            "score": trial.score,
            "values": self._settings.space.config_values(trial.hyperparameters.values),
            "metrics": result.metrics,
            "step": result.step,
            "epochs": result.epochs,
            "seconds": result.seconds,
            "stop_reason": result.stop_reason,
            "error": result.error if trial.status == TrialStatus.FAILED else "",
        }

    def _task(self, trial: Trial) -> TrialTask:
        values, tune = trial.hyperparameters.values, self.tune
        limits = {
            "max_epochs": values.get(_EPOCHS, tune.max_epochs),
            "max_minutes": tune.max_minutes,
            "devices": "one",
        }
        changes = {
            **self._settings.space.config_values(values),
            **{f"training.{key}": limit for key, limit in limits.items() if limit is not None},
        }
        folder, before = self.get_trial_dir(trial.trial_id), values.get(_CONTINUED)
        checkpoints = checkpoint_folder(folder)
        return TrialTask(
            folder=folder,
            config=replace_values(self._settings.config, changes),
            run=self._settings.run.model_copy(
                update={"checkpoints": str(checkpoints.parent), "checkpoint_key": checkpoints.name}
            ),
            source=self._source,
            objective=self.oracle.objective.name,
            continued_from=None if before is None else self.get_trial_dir(before),
        )

    def _report(self, trial: Trial) -> None:
        """Report how a trial ended."""
        row, result = self._row(trial), self._result(trial)
        name = f"trial {row['trial']}"
        if row["continued_from"] is not None:
            name += f", continuing trial {row['continued_from']}"
        text = f"{name}: {trial_table.format_values(row['values'])}: "
        if result.score is None:
            events.emit("warning", node=NODE, text=f"{text}failed: {result.error}")
        else:
            text += trial_table.format_score(self.oracle.objective.name, result.score)
            events.emit("note", node=NODE, text=text)

    def _result(self, trial: Trial) -> TrialResult:
        result = read_result(self.get_trial_dir(trial.trial_id))
        return result or TrialResult(error=trial.message or "unknown error")

    def _delete_checkpoints(self, trial_id: str) -> None:
        folder = checkpoint_folder(self.get_trial_dir(trial_id))
        with contextlib.suppress(OSError):  # they only need space
            owned_folders.remove(folder, owned_folders.CHECKPOINTS)


class _AtomicOracle(keras_tuner.Oracle):
    """An oracle whose files are written atomically, so that a kill cannot leave half of one."""

    def save(self) -> None:
        write_state(self._get_oracle_fname(), self.get_state())

    def _save_trial(self, trial: Trial) -> None:
        path = Path(self._project_dir, f"trial_{trial.trial_id}", "trial.json")
        write_state(path, trial.get_state())

    def reload(self) -> None:
        super().reload()
        # In order; and without one that was killed before the oracle knew of it, which is
        # created again.
        self.trials: dict[str, Trial] = {key: self.trials[key] for key in self.start_order}


class _Hyperband(_AtomicOracle, oracles.HyperbandOracle):
    pass


class _Bayesian(_AtomicOracle, oracles.BayesianOptimizationOracle):
    pass


class _Random(_AtomicOracle, oracles.RandomSearchOracle):
    pass


def create_oracle(tune: TuneConfig, space: SearchSpace) -> keras_tuner.Oracle:
    """Return the oracle that selects the values of each trial."""
    assert tune.objective is not None
    shared = {
        "objective": keras_tuner.Objective(tune.objective, direction(tune.objective)),
        "hyperparameters": space.hyperparameters(),
        "seed": 1 + tune.seed,  # KerasTuner takes 0 for none
    }
    if tune.algorithm == "hyperband":
        assert tune.max_epochs is not None
        oracle = _Hyperband(
            max_epochs=tune.max_epochs,
            factor=tune.factor or DEFAULT_FACTOR,
            hyperband_iterations=tune.iterations or 1,
            **shared,
        )
        # Hyperband needs no limit, but TFX and the progress display need the number of trials.
        oracle.max_trials = oracle.hyperband_iterations * sum(
            oracle._get_size(bracket, number)
            for bracket in range(oracle._get_num_brackets())
            for number in range(oracle._get_num_rounds(bracket))
        )
    else:
        kind = _Bayesian if tune.algorithm == "bayesian" else _Random
        oracle = kind(max_trials=tune.max_trials or DEFAULT_TRIALS, **shared)
    # At most all trials, or a search whose trials all failed would end without an error.
    oracle.max_consecutive_failed_trials = min(tune.max_failed_trials, oracle.max_trials)
    oracle.verbose = 0
    return oracle


def direction(objective: str) -> str:
    """Return ``max`` or ``min``: whether a higher value of a measure is better."""
    return "max" if objective in METRICS and METRICS[objective].higher_is_better else "min"
