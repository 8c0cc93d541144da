"""Check the job service of a cluster before a node waits for it."""

from collections.abc import Sequence

import grpc
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc

from regard.core.errors import EnvironmentFault, UserError
from regard.pipeline.config.beam import JOB_SERVER_SECTIONS, job_server_options
from regard.pipeline.runners.failures import UNREACHABLE_REMEDY

_TIMEOUT_SECONDS = 20


def check_job_service(arguments: Sequence[str]) -> None:
    """Check that a job service answers and knows the options that only a job server knows.

    Beam itself waits for minutes, and ignores options that are unknown to the server.

    Args:
        arguments: the arguments of Beam; without ``--job_endpoint`` nothing is checked.

    Raises:
        UserError: no job service answers, or it is another one.
    """
    options = dict(argument.removeprefix("--").partition("=")[::2] for argument in arguments)
    if not (endpoint := options.get("job_endpoint")):
        return
    where = f"beam.options.job_endpoint: {endpoint}"
    seconds = float(options.get("job_server_timeout") or _TIMEOUT_SECONDS)
    request = beam_job_api_pb2.DescribePipelineOptionsRequest()
    with grpc.insecure_channel(endpoint) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=seconds)
            service = beam_job_api_pb2_grpc.JobServiceStub(channel)
            response = service.DescribePipelineOptions(request, timeout=seconds)
        except (grpc.FutureTimeoutError, grpc.RpcError) as error:
            reason = error.code().name if isinstance(error, grpc.RpcError) else f"{seconds:g} s"
            message = f"No job service of Beam answers ({reason})."
            raise EnvironmentFault(message, where, UNREACHABLE_REMEDY) from error
    names = {option.name for option in response.options}
    if not names:  # Beam's job service in Python lists none
        return
    of_servers = job_server_options(*JOB_SERVER_SECTIONS["portable"]).keys() & options.keys()
    for name in sorted(of_servers - names - {"execution_mode_for_batch"}):
        message = f"The job service at {endpoint} does not know this option."
        remedy = "Remove it, or use a job server of the same Beam version as Regard."
        raise UserError(message, f"beam.options.{name}", remedy)
