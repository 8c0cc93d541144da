"""The password of a database is not in what TFX's runners log."""

import logging

import pytest
from absl import logging as absl_logging
from ml_metadata.proto import metadata_store_pb2
from tfx.dsl.compiler.compiler import Compiler
from tfx.orchestration import metadata
from tfx.orchestration.pipeline import Pipeline
from tfx.orchestration.portable.launcher import Launcher

from regard.pipeline.runners import local
from tests.pipeline.pushing import CorpusGen


# TFX calls a deprecated method of protobuf; the worker ignores the warning as well.
@pytest.mark.filterwarnings(r"ignore:label\(\) is deprecated:DeprecationWarning")
@pytest.mark.parametrize("runner", ["local", "beam"])
def test_runners_connect_with_a_password_that_they_do_not_log(
    tmp_path, monkeypatch, caplog, runner
):
    connection = metadata_store_pb2.ConnectionConfig()
    connection.mysql.host, connection.mysql.database = "127.0.0.1", "mlmd"
    connection.mysql.user, connection.mysql.password = "regard", "s3cret"
    pipeline = Pipeline("m", str(tmp_path), None, [CorpusGen(corpus="{}")])
    pipeline.metadata_connection_config = connection
    ir = Compiler().compile(pipeline)
    connections = []

    def launch(launcher: Launcher) -> None:
        connections.append(launcher._mlmd_connection.connection_config)

    class Connected(metadata.Metadata):
        def __enter__(self):  # Beam's runner looks up the run
            return self

    monkeypatch.setattr(Launcher, "launch", launch)
    monkeypatch.setattr(metadata, "Metadata", Connected)
    absl_logging.set_verbosity(absl_logging.INFO)
    try:
        with caplog.at_level(logging.INFO):
            local.run_nodes(ir, runner)
    finally:
        absl_logging.set_verbosity(absl_logging.WARNING)
    assert connections == [connection]
    assert "mlmd" in caplog.text
    assert "s3cret" not in caplog.text
    assert metadata.Metadata is Connected
