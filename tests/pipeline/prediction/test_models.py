import subprocess
import sys

import pytest

from regard.core.errors import UserError
from regard.pipeline.cli.predict import predict
from regard.pipeline.cli.score import score
from regard.pipeline.prediction.models import load_model, open_model
from regard.serving.server.manager import ModelManager
from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import ManagerOptions, ServerOptions
from regard.serving.server.server import Server
from tests import fake_models, fake_tasks
from tests.processes import free_port
from tests.serving.server.conftest import Running
from tests.tolerances import close_to

ROWS = [{"source": text} for text in ("abc", "", "a longer text", "ü")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, save_model):
    root = tmp_path_factory.mktemp("models")
    save_model(root / "reverser" / "1", fake_models.Reverser)
    save_model(root / "strict" / "1", fake_models.Reverser, "refuse")
    save_model(root / "matcher" / "1", fake_tasks.Matcher)
    save_model(root / "namer" / "1", fake_tasks.Namer)
    return root


@pytest.fixture(scope="module")
def ports(folder):
    models = [ModelConfig(path.name, path) for path in folder.iterdir()]
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
        assert one.score == close_to(other.score)


def test_the_task_and_the_contract_follow_from_the_names(folder, ports):
    for name in ("reverser", "namer"):
        served, _ = open_model(f"http://127.0.0.1:{ports['http']}/{name}", folder)
        local = load_model(folder / name / "1").contract
        for key in ("task", "answer", "score", "detail", "looks"):
            assert served.contract[key] == local[key], key
        for signature, entry in served.contract["signatures"].items():
            assert entry["outputs"] == local["signatures"][signature]["outputs"], signature
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


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("reverser", ["abc", "", "ü", "x" * 101]),
        ("matcher", ["abcd", "abxy", "a", "a"]),
        ("namer", ["a.png"]),
    ],
)
@pytest.mark.parametrize(
    "options", [{}, {"as_json": True}, {"as_json": True, "align": True}], ids=str
)
def test_a_server_prints_the_same(
    folder, ports, capfd, tmp_path, monkeypatch, name, texts, options
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.png").write_bytes(fake_tasks.png(3, 4))
    predict(name, texts, registry=folder, **options)
    local = capfd.readouterr().out
    for scheme, port in ports.items():
        predict(name, texts, server=f"{scheme}://127.0.0.1:{port}/", **options)
        assert capfd.readouterr().out == local != ""


def test_a_server_prints_the_same_table_and_score(folder, ports, capfd):
    outputs = []
    for place in ({"registry": folder}, {"server": f"grpc://127.0.0.1:{ports['grpc']}"}):
        predict("reverser", ["abc"], align=True, **place)
        score("reverser", ["abc", "CB"], as_json=True, **place)
        outputs.append(capfd.readouterr().out)
    assert outputs[0] == outputs[1]
    assert "█" in outputs[0]


def test_a_rejected_row_is_the_same_error(folder, ports):
    errors = []
    for place in ({"registry": folder}, {"server": f"http://127.0.0.1:{ports['http']}"}):
        with pytest.raises(UserError) as caught:
            predict("strict", ["ab", "x" * 101], **place)
        errors.append((caught.value.message, caught.value.where, caught.value.remedy))
    assert errors[0] == errors[1]
    assert "more than the 100 tokens" in errors[0][0]


def test_the_token_comes_from_the_environment(folder, tmp_path, monkeypatch):
    manager = ModelManager([ModelConfig("reverser", folder / "reverser")], ManagerOptions())
    (tmp_path / "tokens").write_text("secret")
    options = ServerOptions(grpc_port=0, rest_port=0, token_file=tmp_path / "tokens")
    running = Running(manager, Server(manager, options))
    server = f"grpc://127.0.0.1:{running.server.grpc_port}"
    try:
        with pytest.raises(UserError, match="UNAUTHENTICATED") as caught:
            predict("reverser", ["ab"], server=server)
        assert "REGARD_TOKEN" in caught.value.remedy
        monkeypatch.setenv("REGARD_TOKEN", "secret")
        predict("reverser", ["ab"], server=server)
        with pytest.raises(UserError, match="in clear text"):
            predict("reverser", ["ab"], server="grpc://192.0.2.1:8500")
    finally:
        running.stop()


def test_a_client_imports_no_tensorflow(folder, ports):
    code = f"""if True:
        import sys
        from regard.pipeline.cli.predict import predict
        predict("reverser", ["ab"], server="grpc://127.0.0.1:{ports["grpc"]}")
        print(sorted({{"tensorflow", "keras", "starlette", "pyarrow"}} & set(sys.modules)))"""
    output = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert output == "BA\n[]\n"
