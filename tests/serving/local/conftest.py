"""A running server, on ports that are free, for tests that ask it from outside."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field

import grpc
import httpx
import pytest
from tensorflow_serving.apis import model_service_pb2_grpc, prediction_service_pb2_grpc

from serving.local.manager import Manager, Options
from serving.local.model_config import ModelConfig, Policy
from serving.local.server import Listening, Server
from tests import fake_models, fake_tasks


@dataclass
class Running:
    """A server in a thread of its own.

    Attributes:
        manager: of its models; touched only through ``do``.
        server: the server.
    """

    manager: Manager
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
        """What a coroutine gives on the server's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(120)

    def stop(self):
        self.rest.close()
        self.channel.close()
        self.do(self.server.stop(5))
        self.loop.call_soon_threadsafe(self.loop.stop)


@pytest.fixture
def run():
    """Starts servers, and stops them at the end."""
    running = []

    def start(models, options, **listening):
        manager = Manager(models, options)
        ports = {"grpc_port": 0, "rest_port": 0, **listening}
        running.append(Running(manager, Server(manager, Listening(**ports))))
        return running[-1]

    yield start
    for one in running:
        one.stop()


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """Fake models as folders of versions, by name."""
    root = tmp_path_factory.mktemp("models")
    fake_models.save(fake_models.Reverser(), root / "reverser" / "1")
    fake_models.save(fake_models.Reverser("weights"), root / "reverser" / "2")
    fake_models.save(fake_tasks.Sorter(least=2), root / "sorter" / "7")
    (root / "reverser" / "not-a-number").mkdir()
    (root / "reverser" / "3.txt").write_text("no folder")
    return root


@pytest.fixture(scope="module")
def server(saved):
    """One server for a whole file of tests; they only ask it."""
    models = [
        ModelConfig("reverser", saved / "reverser", Policy(None, every=True), {"stable": 1}),
        ModelConfig("sorter", saved / "sorter"),
        ModelConfig("none", saved / "nowhere"),
    ]
    manager = Manager(models, Options(poll_seconds=0))
    running = Running(manager, Server(manager, Listening(grpc_port=0, rest_port=0)))
    yield running
    running.stop()
