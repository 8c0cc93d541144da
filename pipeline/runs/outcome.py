"""How a run ended: the status for its record, the failure, and the exit status."""

import dataclasses
import signal

from regard.components.common.run_progress import Progress
from regard.components.common.run_record import (
    CACHED,
    DONE,
    FAILED,
    INTERRUPTED,
    NOT_BLESSED,
    STOPPED,
    SUCCEEDED,
)
from regard.core.errors import Failure
from regard.core.processes import describe_exit
from regard.pipeline.runs.supervise import Ending

USER_ERROR = 2
_EXIT_STATUS = {SUCCEEDED: 0, FAILED: 1, NOT_BLESSED: 3, INTERRUPTED: 130}
_MEMORY_KEYS = {"Trainer": "training.batch_tokens", "Predictor": "evaluation.batch_size"}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a run ended: the status for ``run.json``, and why it failed."""

    status: str
    failure: Failure | None = None

    @property
    def exit_status(self) -> int:
        """The exit status for the shell."""
        is_user_error = self.failure is not None and self.failure.user
        return USER_ERROR if is_user_error else _EXIT_STATUS[self.status]


def judge(ending: Ending, state: Progress) -> Outcome:
    """Derive the outcome from the end of the worker and the progress of the nodes."""
    if ending.status != 0 and ending.interrupted:
        return Outcome(INTERRUPTED)
    # The user's code may end the process with status 0.
    is_complete = all(node.state in (DONE, CACHED) for node in state.nodes.values())
    if ending.status != 0 or not is_complete:
        return Outcome(FAILED, state.failure or _unreported_failure(ending.status, state))
    is_pushed = "Pusher" not in state.nodes or state.pushed_model().get("pushed")
    return Outcome(SUCCEEDED if is_pushed else NOT_BLESSED)


def _unreported_failure(status: int, state: Progress) -> Failure:
    """The failure of a worker that ended without an event about it: killed, or crashed."""
    node = next((node.name for node in state.nodes.values() if node.state == STOPPED), None)
    if status == USER_ERROR:  # the worker could not write an event about the failure
        return Failure(
            node=node,
            error="the reason could not be recorded; the disk may be full",
            remedy="Free some disk space.",
            user=True,
        )
    if status == 0:
        error = "the worker process ended before all nodes were done"
        advice = "Remove calls such as sys.exit and os._exit from code of your own."
        return Failure(node=node, error=error, remedy=advice)
    remedy = None
    if status == -signal.SIGKILL:
        key = _MEMORY_KEYS.get(node or "")
        remedy = f"Use more memory{f', or reduce {key}' if key else ''}."
    return Failure(node=node, error=f"the worker process {describe_exit(status)}", remedy=remedy)
