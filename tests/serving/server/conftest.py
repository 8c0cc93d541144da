"""A running server on free ports."""

import asyncio
import threading
from dataclasses import dataclass, field

import grpc
import httpx
import pytest
from tensorflow_serving.apis import model_service_pb2_grpc, prediction_service_pb2_grpc

from regard.serving.server.manager import ModelManager
from regard.serving.server.model_config import ModelConfig, VersionPolicy
from regard.serving.server.options import ManagerOptions, ServerOptions
from regard.serving.server.server import Server
from tests import fake_models, fake_tasks
from tests.serving.server.fake_servable import folder, start  # noqa: F401  (fixtures)


@dataclass
class Running:
    """A server in a thread of its own.

    Attributes:
        manager: the models; used only through ``do``.
        server: the server.
    """

    manager: ModelManager
    server: Server
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def __post_init__(self):
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.do(self.server.start())
        self.rest = httpx.Client(base_url=f"http://127.0.0.1:{self.server.rest_port}", timeout=60)
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.server.grpc_port}")
        self.predictions = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)
        self.models = model_service_pb2_grpc.ModelServiceStub(self.channel)

    def do(self, coroutine):
        """Run a coroutine on the server's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(120)

    def stop(self):
        self.rest.close()
        self.channel.close()
        self.do(self.server.stop(5))
        self.loop.call_soon_threadsafe(self.loop.stop)


@pytest.fixture
def anyio_backend():
    """The event loop of asynchronous tests."""
    return "asyncio"


@pytest.fixture
def run():
    """Start servers, and stop them at the end of the test."""
    running = []

    def start_server(models, options, **server_options):
        manager = ModelManager(models, options)
        ports = {"grpc_port": 0, "rest_port": 0, **server_options}
        running.append(Running(manager, Server(manager, ServerOptions(**ports))))
        return running[-1]

    yield start_server
    for started in running:
        started.stop()


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """Fake models as folders of versions, by name."""
    root = tmp_path_factory.mktemp("models")
    fake_models.save(fake_models.Reverser(), root / "reverser" / "1")
    fake_models.save(fake_models.Reverser("weights"), root / "reverser" / "2")
    fake_models.save(fake_tasks.Sorter(min_points=2), root / "sorter" / "7")
    (root / "reverser" / "not-a-number").mkdir()
    (root / "reverser" / "3.txt").write_text("no folder")
    return root


@pytest.fixture(scope="module")
def server(saved):
    """One server for all tests of a file."""
    models = [
        ModelConfig("reverser", saved / "reverser", VersionPolicy(None), {"stable": 1}),
        ModelConfig("sorter", saved / "sorter"),
        ModelConfig("none", saved / "nowhere"),
    ]
    manager = ModelManager(models, ManagerOptions(poll_seconds=0))
    running = Running(manager, Server(manager, ServerOptions(grpc_port=0, rest_port=0)))
    yield running
    running.stop()
