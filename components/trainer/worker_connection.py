"""The connection of a worker process with the others, and the job that the chief shares."""

import contextlib
import os
from collections.abc import Iterator

from regard.components.common.code_digest import code_digest
from regard.components.settings.trainer import TrainingJob
from regard.components.trainer.backends.base import TrainingBackend
from regard.components.trainer.device_group import DeviceGroup
from regard.components.trainer.distributed_worker import WorkerSpec, connection_error
from regard.components.trainer.precision import resolve_precision
from regard.core.errors import EnvironmentFault


@contextlib.contextmanager
def connect(backend: TrainingBackend) -> Iterator[DeviceGroup]:
    """Connect this process with the other workers, and name a lost connection.

    Raises:
        UserError: the connection to a worker is lost.
    """
    spec = WorkerSpec.from_environment(os.environ)
    try:
        yield backend.connect_workers(spec.addresses, spec.index)
    except Exception as error:
        if not backend.is_connection_error(error):
            raise
        raise connection_error(str(error)) from error


def share_job(group: DeviceGroup, job: TrainingJob | None) -> TrainingJob:
    """Return the chief's job, with the precision of its device, in every worker.

    Args:
        group: all workers.
        job: the job of the chief; the others pass None.

    Raises:
        UserError: the chief runs another version.
    """
    code = code_digest("regard.components.trainer", "regard.models")

    def chief_job() -> list[str]:
        if job is None:
            raise TypeError("The chief has no job.")
        return [resolve_precision(job).model_dump_json(), code]

    shared_job, chief_code = group.broadcast_object(chief_job)
    if chief_code != code:
        raise EnvironmentFault(
            "The chief and this worker run different versions of Regard.",
            remedy="Install the same version on all workers, and start them again.",
        )
    return TrainingJob.model_validate_json(shared_job)
