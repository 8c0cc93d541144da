import pytest

from regard.components.common.errors import UserError
from regard.pipeline.prediction.models import load_model, open_model
from regard.serving.server.manager import ModelManager
from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import ManagerOptions, ServerOptions
from regard.serving.server.server import Server
from tests import fake_models, fake_tasks
from tests.processes import free_port
from tests.serving.server.conftest import Running

ROWS = [{"source": text} for text in ("abc", "", "a longer text", "ü")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    for name, model in (("reverser", fake_models.Reverser()), ("matcher", fake_tasks.Matcher())):
        fake_models.save(model, root / name / "1")
    return root


@pytest.fixture(scope="module")
def ports(folder):
    models = [ModelConfig(name, folder / name) for name in ("reverser", "matcher")]
    manager = ModelManager(models, ManagerOptions(poll_seconds=0))
    running = Running(manager, Server(manager, ServerOptions(grpc_port=0, rest_port=0)))
    yield {"grpc": running.server.grpc_port, "http": running.server.rest_port}
    running.stop()


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_a_served_model_equals_its_folder(folder, ports, scheme):
    served, record = open_model(f"{scheme}://127.0.0.1:{ports[scheme]}/reverser@1", folder)
    local = load_model(folder / "reverser" / "1")
    assert record.config == {}
    assert served.contract["task"] == "translation"
    for one, other in zip(
        served.predict("serving_default", ROWS), local.predict("serving_default", ROWS), strict=True
    ):
        assert one.hypothesis == other.hypothesis
        assert one.score == pytest.approx(other.score)


def test_the_task_follows_from_the_names(folder, ports):
    served, _ = open_model(f"grpc://127.0.0.1:{ports['grpc']}/matcher", folder)
    assert served.contract["task"] == "similarity"
    assert served.contract["scored"] is None


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("grpc://127.0.0.1:{grpc}/nothing", "No version of model 'nothing'"),
        ("grpc://127.0.0.1:{grpc}/reverser@9", "9"),
        ("http://127.0.0.1:{free}/reverser", "UNAVAILABLE"),
        ("grpc://127.0.0.1:{grpc}", "address of the model is invalid"),
        ("ftp://127.0.0.1/reverser", "address of the model is invalid"),
    ],
)
def test_errors_of_addresses(folder, ports, address, message):
    address = address.format(free=free_port(), **ports)
    with pytest.raises(UserError, match=message):
        open_model(address, folder)


def test_a_folder_without_a_model(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"nonsense")
    with pytest.raises(UserError, match="cannot be"):
        load_model(tmp_path)
