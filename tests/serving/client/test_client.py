"""The client against a server: both protocols, sync and async, errors."""

import asyncio
import contextlib
import inspect
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest

from regard.serving.client import AsyncClient, Client, ClientError
from regard.serving.server.manager import ModelManager
from regard.serving.server.model_config import ModelConfig, VersionPolicy
from regard.serving.server.options import ManagerOptions, ServerOptions
from regard.serving.server.server import Server
from tests import fake_models, fake_tasks
from tests.processes import free_port, wait_for
from tests.serving.server.conftest import Running

REAL = "tensorflow_model_server"


class Blocking:
    """An ``AsyncClient`` with blocking methods."""

    def __init__(self, *arguments, **options):
        self._loop = asyncio.new_event_loop()

        async def make():
            return AsyncClient(*arguments, **options)

        self._client = self._loop.run_until_complete(make())

    def __getattr__(self, name):
        def call(*arguments, **options):
            return self._loop.run_until_complete(getattr(self._client, name)(*arguments, **options))

        return call


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    for version in ("1", "2"):
        fake_models.save(fake_models.Reverser(), root / "reverser" / version)
    fake_models.save(fake_tasks.Sorter(min_points=2), root / "sorter" / "1")
    fake_models.save(fake_tasks.Namer(), root / "namer" / "1")
    fake_models.save(fake_tasks.Matcher(), root / "matcher" / "1")
    fake_models.save(fake_models.ManyHeaded(), root / "headed" / "1")
    fake_models.save(fake_models.Constrained(), root / "constrained" / "1")
    return root


@pytest.fixture(scope="module", params=["regard", REAL])
def ports(request, folder, tmp_path_factory):
    """The ports of gRPC and REST."""
    names = ("reverser", "sorter", "namer", "headed", "matcher", "constrained")
    if request.param == "regard":
        every = VersionPolicy(None)
        models = [ModelConfig(name, folder / name, every) for name in names]
        manager = ModelManager(models, ManagerOptions(poll_seconds=0))
        running = Running(manager, Server(manager, ServerOptions(grpc_port=0, rest_port=0)))
        yield running.server.grpc_port, running.server.rest_port
        running.stop()
        return
    if shutil.which(REAL) is None:
        pytest.skip(f"no {REAL}")
    config = tmp_path_factory.mktemp("real") / "models.config"
    entries = "".join(
        f'config {{ name: "{name}" base_path: "{folder / name}" model_platform: "tensorflow"'
        " model_version_policy { all {} } }\n"
        for name in names
    )
    config.write_text(f"model_config_list {{ {entries} }}")
    free = free_port(), free_port()
    command = [REAL, f"--port={free[0]}", f"--rest_api_port={free[1]}"]
    process = subprocess.Popen([*command, f"--model_config_file={config}"])

    def has_loaded():
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"http://127.0.0.1:{free[1]}/v1/models/matcher").is_success

    wait_for(has_loaded)
    yield free
    process.terminate()
    process.wait(30)


@pytest.fixture(params=["grpc", "http", "grpc, async", "http, async"])
def connect(request, ports):
    """Create clients of one kind."""
    scheme, _, is_async = request.param.partition(", ")
    port = ports[scheme == "http"]
    created = []

    def connect(model, **options):
        make = Blocking if is_async else Client
        created.append(make(f"{scheme}://127.0.0.1:{port}", model, **options))
        return created[-1]

    yield connect
    for client in created:
        client.close()


def test_texts(connect):
    client = connect("reverser")
    assert client.predict(["abc", "é", ""]) == [
        {"translation": "CBA", "score": -1.5},
        {"translation": "É", "score": -0.5},
        {"translation": "", "score": 0.0},
    ]
    assert client.predict([{"source": "ab"}])[0]["translation"] == "BA"
    assert client.predict([]) == []


def test_a_long_list_is_split_into_requests(connect):
    texts = ["ab" * n for n in range(23)]
    result = connect("reverser", batch_size=5).predict(texts)
    assert [row["translation"] for row in result] == ["BA" * n for n in range(23)]


def test_attention_has_no_padding(connect):
    long, short = connect("reverser").align(["abcd", "x"])
    assert long["target_pieces"] == ["D", "C", "B", "A", "</s>"]
    assert short["source_pieces"] == ["x", "</s>"]
    assert short["alignment"].shape == (2, 2)
    assert short["alignment"].dtype == np.float32
    assert short["alignment"].tolist() == [[1, 0], [0, 1]]


def test_heads_have_all_layers_and_no_padding(connect):
    requested = [{"source": "abcdef", "target": "FEDCBA"}, {"source": "x", "target": "X"}]
    long, short = connect("headed").predict(requested, "heads")
    assert long["cross_heads"].shape == (2, 3, 7, 7)
    assert short["cross_heads"].shape == (2, 3, 2, 2)
    assert short["cross_heads"][1, 0].tolist() == [[1, 0], [0, 1]]


def test_constraints(connect):
    client = connect("constrained")
    rows = client.constrain(["abc", {"source": "x"}], prefix="p", phrases=["y", "z"])
    assert [row["translation"] for row in rows] == ["p|CBA|y\nz", "p|X|y\nz"]
    assert [row["translation"] for row in client.constrain(["ab"])] == ["|BA|"]
    for arguments in ({"rows": "abc"}, {"rows": ["abc"], "phrases": "abc"}):
        with pytest.raises(TypeError, match=r"must be a list, not str"):
            client.constrain(**arguments)
    with pytest.raises(ClientError, match="no signature 'constrained'"):
        connect("reverser").constrain(["abc"])


def test_scores_of_given_outputs(connect):
    client = connect("reverser")
    result = client.score(["abc", "x"], ["CBA", "XYZ!"])
    assert [row["score"] for row in result] == [-1.5, -2.0]
    assert result[1]["target_pieces"] == ["X", "Y", "Z", "!", "</s>"]
    with pytest.raises(ClientError, match="2 rows and 1 outputs"):
        client.score(["a", "b"], ["c"])
    with pytest.raises(ClientError, match="There is no signature 'score'"):
        connect("sorter").score([[[0, 0], [1, 1]]], [[0, 1]])


def test_points_images_and_pairs(connect):
    points = [[[3, 0], [1, 0], [2, 0]], [[-1.0, 0.5], [-2, 5]]]
    result = connect("sorter").align(points)
    assert [row["order"].tolist() for row in result] == [[1, 2, 0], [1, 0]]
    image = fake_tasks.png(3, 4)
    assert connect("namer").predict([image])[0]["caption"] == "3 by 4"
    pairs = [{"first": "abcd", "second": "abxy"}, {"first": "é", "second": "é"}]
    assert [row["similarity"] for row in connect("matcher").predict(pairs)] == [0.5, 1.0]


def test_texts_may_contain_null_characters(connect):
    (row,) = connect("reverser").align(["a\0"])
    assert row["source_pieces"] == ["a", "\0", "</s>"]


def test_metadata_and_status(connect):
    client = connect("sorter")
    signature = client.metadata()["align"]
    assert {name: (value.kind, value.rank) for name, value in signature.inputs.items()} == {
        "points": ("float", 3),
        "points_length": ("int32", 1),
    }
    assert signature.outputs["order"].kind == "int32"
    assert connect("reverser").status() == {1: "AVAILABLE", 2: "AVAILABLE"}
    assert connect("reverser", version=1).status() == {1: "AVAILABLE"}


@pytest.mark.parametrize(
    ("model", "options", "query", "code"),
    [
        ("nobody", {}, lambda client: client.predict(["a"]), "NOT_FOUND"),
        ("nobody", {}, lambda client: client.status(), "NOT_FOUND"),
        ("reverser", {"version": 9}, lambda client: client.predict(["a"]), "NOT_FOUND"),
        ("reverser", {"label": "no"}, lambda client: client.predict(["a"]), "INVALID_ARGUMENT"),
        ("reverser", {}, lambda client: client.predict(["a"], "no"), "NOT_FOUND"),
        ("reverser", {}, lambda client: client.predict([{"text": "a"}]), "INVALID_ARGUMENT"),
        ("matcher", {}, lambda client: client.predict(["a"]), "INVALID_ARGUMENT"),
        ("sorter", {}, lambda client: client.predict([[[1, 2]]]), "INVALID_ARGUMENT"),
        ("reverser", {"timeout": 0}, lambda client: client.status(), "DEADLINE_EXCEEDED"),
    ],
)
def test_errors(connect, model, options, query, code):
    with pytest.raises(ClientError) as caught:
        query(connect(model, **options))
    assert caught.value.code == code
    assert caught.value.message


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_an_unavailable_server_is_an_error(scheme):
    client = Client(f"{scheme}://127.0.0.1:{free_port()}", "m", retries=3, timeout=20)
    with pytest.raises(ClientError) as caught:
        client.status()
    assert caught.value.code == "UNAVAILABLE"


class Flaky:
    """A connection that fails a few times first."""

    def __init__(self, codes):
        self.codes, self.sent = list(codes), 0

    def states(self, timeout):
        self.sent += 1
        if self.codes:
            raise ClientError(self.codes.pop(0), "flaky")
        return {1: "AVAILABLE"}


@pytest.mark.parametrize(
    ("codes", "sent", "fails"),
    [
        (["UNAVAILABLE"] * 2, 3, False),
        (["UNAVAILABLE"] * 4, 4, True),
        (["INTERNAL"], 1, True),
        (["RESOURCE_EXHAUSTED"], 1, True),
    ],
)
def test_only_unavailable_is_retried(codes, sent, fails):
    client = Client("http://127.0.0.1:1", "m", retries=3)
    client._connection = Flaky(codes)
    if fails:
        with pytest.raises(ClientError):
            client.status()
    else:
        assert client.status() == {1: "AVAILABLE"}
    assert client._connection.sent == sent


def test_both_clients_have_the_same_methods():
    for name, method in inspect.getmembers(Client, inspect.isfunction):
        if not name.startswith("_"):
            other = inspect.signature(getattr(AsyncClient, name))
            assert other.parameters == inspect.signature(method).parameters, name


@pytest.mark.parametrize("target", ["localhost:8500", "ftp://a", "grpc://", ""])
def test_invalid_targets(target):
    with pytest.raises(ValueError, match="Invalid target"):
        Client(target, "m")


def test_a_version_or_a_label():
    with pytest.raises(ValueError, match="not both"):
        Client("http://a", "m", version=1, label="x")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    folder = tmp_path_factory.mktemp("tls")
    chain, key = folder / "chain.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-keyout", str(key), "-out", str(chain), "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    return chain, key


def test_mutual_tls_and_tokens(folder, certificate, tmp_path):
    models = [ModelConfig("reverser", folder / "reverser")]
    manager = ModelManager(models, ManagerOptions(poll_seconds=0))
    ports = {"grpc_port": 0, "rest_port": 0}
    (tmp_path / "tokens").write_text("t")
    tls = {"tls_files": certificate, "client_ca": certificate[0]}
    options = ServerOptions(**ports, **tls, token_file=tmp_path / "tokens", header_seconds=2)
    running = Running(manager, Server(manager, options))
    valid = {"ca_file": certificate[0], "certificate": certificate, "token": "t"}
    try:
        server = running.server
        for address in (
            f"grpcs://localhost:{server.grpc_port}",
            f"https://localhost:{server.rest_port}",
        ):
            with Client(address, "reverser", **valid) as client:
                assert client.predict(["ab"])[0]["translation"] == "BA"
            for wrong, code in (
                ({"ca_file": None}, "UNAVAILABLE"),
                ({"certificate": None}, "UNAVAILABLE"),
                ({"token": None}, "UNAUTHENTICATED"),
                ({"token": "T"}, "UNAUTHENTICATED"),
            ):
                with Client(address, "reverser", retries=0, **valid | wrong) as client:
                    with pytest.raises(ClientError) as caught:
                        client.predict(["ab"])
                    assert caught.value.code == code, wrong
    finally:
        running.stop()
    assert Client("https://a", "m", token="t")._target.headers == {"authorization": "Bearer t"}


def test_a_key_with_a_password_is_refused(certificate, tmp_path):
    chain, key = certificate
    locked = tmp_path / "locked.pem"
    command = ["openssl", "rsa", "-aes256", "-passout", "pass:secret", "-in", str(key)]
    subprocess.run([*command, "-out", str(locked)], check=True, capture_output=True)
    with pytest.raises(ValueError, match=r"locked\.pem has a password"):
        Client("https://localhost", "m", certificate=(chain, locked)).predict(["a"])


def test_the_client_works_without_tensorflow(ports):
    """In a process where importing TensorFlow fails."""
    code = f"""
import sys
sys.modules["tensorflow"] = sys.modules["tensorflow_serving"] = None
from regard.serving.client import Client
for target in ("grpc://127.0.0.1:{ports[0]}", "http://127.0.0.1:{ports[1]}"):
    with Client(target, "reverser") as client:
        print(client.predict(["ab"])[0]["translation"], client.status()[1])
"""
    command = [sys.executable, "-c", code]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert completed.stdout.split() == ["BA", "AVAILABLE"] * 2, completed.stderr


@pytest.mark.parametrize(
    "target", ["http://10.0.0.1:1", "grpc://example.org:1", "http://localhost@a"]
)
def test_tokens_are_not_sent_in_clear_text(target):
    for options in ({"token": "t"}, {"headers": {"Authorization": "Bearer t"}}):
        with pytest.raises(ValueError, match=r"in clear text. Use (http|grpc)s://, or no token."):
            Client(target, "m", **options)
    Client(target, "m").close()


@pytest.mark.parametrize("target", ["http://127.0.0.1:1", "grpc://localhost:1", "http://[::1]:1"])
def test_tokens_may_be_sent_to_this_host(target):
    Client(target, "m", token="t").close()


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_proxies_are_not_used_for_this_host(ports, monkeypatch, scheme):
    """They would receive the token."""
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.setblocking(False)
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "grpc_proxy"):
            monkeypatch.setenv(name, address)
        for name in ("NO_PROXY", "no_proxy", "no_grpc_proxy"):
            monkeypatch.delenv(name, raising=False)
        port = ports[scheme == "http"]
        with Client(f"{scheme}://localhost:{port}", "reverser", token="t", timeout=20) as client:
            assert client.predict(["ab"])
        with pytest.raises(BlockingIOError):
            proxy.accept()
