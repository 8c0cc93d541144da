"""The check of the job service of a cluster, against services on this machine."""

import contextlib
import socket
from collections.abc import Iterator
from concurrent import futures

import grpc
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc
from apache_beam.runners.portability import local_job_service

from regard.core.errors import UserError
from regard.pipeline.runners.job_service import check_job_service
from tests.processes import free_port


class JobServer(beam_job_api_pb2_grpc.JobServiceServicer):
    """Lists options as the job server of an engine does."""

    def __init__(self, *names: str):
        self.names = names

    def DescribePipelineOptions(self, request, context):
        options = [beam_job_api_pb2.PipelineOptionDescriptor(name=name) for name in self.names]
        return beam_job_api_pb2.DescribePipelineOptionsResponse(options=options)


@contextlib.contextmanager
def served(service: beam_job_api_pb2_grpc.JobServiceServicer | None) -> Iterator[int]:
    server = grpc.server(futures.ThreadPoolExecutor(2))
    if service:
        beam_job_api_pb2_grpc.add_JobServiceServicer_to_server(service, server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(0).wait()


def check(port: int, *options: str, seconds: int = 10) -> UserError | None:
    arguments = ["runner=FlinkRunner", f"job_endpoint=localhost:{port}", *options]
    arguments.append(f"job_server_timeout={seconds}")
    try:
        check_job_service([f"--{argument}" for argument in arguments])
    except UserError as error:
        return error
    return None


def test_no_endpoint_is_checked_without_cluster():
    check_job_service(["--runner=FnApiRunner", "--direct_running_mode=in_memory"])


def test_closed_port():
    port = free_port()
    error = check(port, seconds=1)
    assert error.message == "No job service of Beam answers (1 s)."
    assert error.where == f"beam.options.job_endpoint: localhost:{port}"
    assert "that the job service runs" in error.remedy


def test_port_that_accepts_and_never_answers():
    with socket.create_server(("localhost", 0)) as silent:
        assert (
            "No job service of Beam answers (1 s)"
            in check(silent.getsockname()[1], seconds=1).message
        )


def test_another_service():
    with served(None) as port:
        assert "No job service of Beam answers (UNIMPLEMENTED)" in check(port).message


def test_job_service_of_beam_in_python_lists_no_options():
    with served(local_job_service.LocalJobServicer()) as port:
        assert check(port, "sdk_worker_parallelism=2", "object_reuse") is None


def test_option_that_the_job_server_does_not_know():
    """Beam would drop it. An older server may lack the option that Regard sets by default."""
    with served(JobServer("flink_master", "object_reuse", "parallelism")) as port:
        assert check(port, "object_reuse", "execution_mode_for_batch=BATCH_FORCED") is None
        error = check(port, "use_data_stream_for_batch", "parallelism=2", "s3_verify=3")
    assert error.where == "beam.options.use_data_stream_for_batch"
    assert f"localhost:{port} does not know this option" in error.message
