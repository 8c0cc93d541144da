"""All trials of a search: what the oracle wants next, what it is told, and both in the journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras_tuner
from keras_tuner.engine.trial import Trial, TrialStatus

from components.tuner import oracles
from components.tuner.journal import DONE, FAILED, Journal, Result
from components.tuner.space import Space


class Trials:
    """The trials by number, from 0; those that the journal has are there from the start.

    Attributes:
        waiting: those that have begun and have no end yet, when a search is started again.
        forgiven: how many of them had failed.
        exhausted: whether the oracle wants no more.
    """

    def __init__(self, oracle: keras_tuner.Oracle, space: Space, journal: Journal):
        self.oracle, self._space, self._journal = oracle, space, journal
        self._trials: dict[int, Trial] = {}
        self.exhausted = False
        self.forgiven = journal.forgive()
        begun = [number for number, _, _ in journal.trials()]
        oracle.max_trials = max(oracle.max_trials, len(begun))  # perhaps fewer are wanted now
        for event in journal.events:
            if event["event"] == "begin":
                trial = oracle.create_trial(str(event["number"]))
                # The oracle goes on as it did, but the journal has the last word: another release
                # of KerasTuner may draw others.
                trial.hyperparameters.values = dict(event["drawn"])
                self._trials[event["number"]] = trial
            else:
                self._tell(event["number"], Result(**event["result"]))
        self.waiting = [number for number, _, result in journal.trials() if result is None]

    def __len__(self) -> int:
        return len(self._trials)

    def begin(self) -> int | None:
        """The number of a new trial; None: not before another has ended, or never more."""
        number = len(self._trials)
        trial = self.oracle.create_trial(str(number))
        if trial.status == TrialStatus.STOPPED:
            self.exhausted = True
        if trial.status != TrialStatus.RUNNING:
            return None
        trial.hyperparameters.values = self._space.rounded(trial.hyperparameters.values)
        self._journal.begin(number, trial.hyperparameters.values)
        self._trials[number] = trial
        return number

    def drawn(self, number: int) -> Mapping[str, Any]:
        """What a trial is to have: hyperparameters, some of them the oracle's own."""
        return self._trials[number].hyperparameters.values

    def continued(self, number: int) -> int | None:
        """The trial whose training this one goes on with, if there is one."""
        before = self.drawn(number).get(oracles.CONTINUED)
        return None if before is None else int(before)

    def end(self, number: int, result: Result) -> None:
        """Takes in how a trial ended."""
        self._journal.end(number, result)
        self._tell(number, result)

    def rows(self) -> list[dict[str, Any]]:
        """One row a trial, in the order in which they began; trials count from 1 there."""
        rows = []
        for number, drawn, result in self._journal.trials():
            before = self.continued(number)
            row = {
                "trial": number + 1,
                "continues": None if before is None else before + 1,
                "values": self._space.values(drawn),
            }
            rows.append({**row, **(vars(result) if result else {"state": "running"})})
        return rows

    def failures(self) -> list[tuple[int, Result]]:
        """Those that failed after the last success, the last one last."""
        found: list[tuple[int, Result]] = []
        for event in self._journal.events:
            if event["event"] == "end":
                result = Result(**event["result"])
                found = [*found, (event["number"], result)] if result.state == FAILED else []
        return found

    def _tell(self, number: int, result: Result) -> None:
        """Tells the oracle how a trial ended."""
        trial = self._trials[number]
        if result.state == DONE:
            self.oracle.update_trial(trial.trial_id, {self.oracle.objective.name: result.score})
            trial.status = TrialStatus.COMPLETED
        else:
            trial.status, trial.message = TrialStatus.FAILED, result.error
        self.oracle.end_trial(trial)
