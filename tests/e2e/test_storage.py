"""A model with its data and registry in a bucket, from validation to rollback.

The object store is moto's server, in a process of its own.

Two workspaces stand for two hosts: one trains and publishes, the other one serves.
"""

import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import CONFIG, Shell, write_data
from tests.processes import free_port, wait_for

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("s3fs")
pytest.importorskip("moto.server")

pytestmark = pytest.mark.slow
REGISTRY = "s3://models/regis try"


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    """Starts the server; returns the environment of its clients, and a file system."""
    port = free_port()
    log = (tmp_path_factory.mktemp("moto") / "log").open("w")
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            wait_for(lambda: _responds(environment["AWS_ENDPOINT_URL"]))
            files = fsspec.filesystem(
                "s3",
                key="key",
                secret="secret",
                endpoint_url=environment["AWS_ENDPOINT_URL"],
                use_listings_cache=False,
            )
            files.mkdir("models")
            yield environment, files
        finally:
            process.terminate()


def _responds(url):
    try:
        return httpx.get(url, timeout=5).status_code < 500
    except httpx.HTTPError:
        return False


@pytest.fixture(scope="module")
def hosts(bucket, tmp_path_factory):
    """The shells of two hosts, which share only the bucket."""
    environment, files = bucket
    folder = tmp_path_factory.mktemp("data")
    write_data(folder / "data")
    for path in (folder / "data").iterdir():
        files.put_file(str(path), f"models/da ta/{path.name}")
    shells = []
    for name in ("trainer", "server"):
        shell = Shell(tmp_path_factory.mktemp(name))
        shell.environment |= environment
        shells.append(shell)
    text = CONFIG.format(data="s3://models/da ta", epochs=1)
    text += f"serving: {{registry: '{REGISTRY}'}}\n"
    (shells[0].folder / "tiny.yaml").write_text(text)
    return shells


def test_validate_run_serve_and_roll_back(bucket, hosts):
    trainer, server = hosts
    _, files = bucket
    command = trainer.run("validate", "tiny.yaml")
    assert command.returncode == 0, command.stderr
    assert "900 train, 60 eval, 60 test from 3 files" in command.stdout
    command = trainer.run("run", "tiny.yaml")
    assert command.returncode == 0, command.stdout + command.stderr
    assert f"regard predict --registry '{REGISTRY}' tiny" in command.stdout
    assert files.exists("models/regis try/tiny/1/saved_model.pb")
    # Another run finds everything in the cache, also without the local copies.
    for path in (trainer.home / "cache").rglob("*"):
        if path.is_file():
            path.unlink()
    command = trainer.run("run", "tiny.yaml")
    assert command.returncode == 0, command.stdout + command.stderr
    assert set(trainer.states().values()) == {"cached"}

    command = server.run("predict", "tiny@1", "--registry", REGISTRY, text="abc\n")
    assert (command.returncode, command.stdout.count("\n")) == (0, 1), command.stderr
    port = free_port()
    process = server.start(
        *("serve", "tiny", "--registry", REGISTRY, "--port", "0", "--rest-api-port", str(port))
    )
    try:
        line = process.stdout.readline()
        assert re.match(r"Serving tiny@1 after", line), line + process.stderr.read()
        # The same start with other data, from the version in production.
        files.pipe_file("models/da ta/train.tsv", files.cat_file("models/da ta/eval.tsv") * 20)
        text = (trainer.folder / "tiny.yaml").read_text()
        text = text.replace("  early_stopping: null", "  early_stopping: null\n  warm_start: {}")
        (trainer.folder / "warm.yaml").write_text(text)
        command = trainer.run("run", "warm.yaml", "--publish-anyway")
        assert command.returncode == 0, command.stdout + command.stderr
        command = server.run("registry", "list", "tiny", "--registry", REGISTRY, "--json")
        assert '"compared_with": "1"' in command.stdout
        assert '"model": "tiny@1"' in command.stdout
        wait_for(lambda: _available(port) == 2, seconds=120)
        command = trainer.run("rollback", "tiny", "--registry", REGISTRY)
        assert command.stdout.startswith("tiny@3 is live, with the model of tiny@1"), command.stderr
        wait_for(lambda: _available(port) == 3, seconds=120)
    finally:
        process.kill()
        process.communicate()
    command = trainer.run("registry", "prune", "tiny", "--keep", "1", "--yes", "--withdrawn",
                          "--registry", REGISTRY)  # fmt: skip
    assert command.returncode == 0, command.stderr
    assert {name.split("/")[3] for name in files.find("models/regis try/tiny")} == {"3"}
    assert not [*trainer.folder.glob("*:*"), *server.folder.glob("*:*")]


def _available(port):
    status = httpx.get(f"http://127.0.0.1:{port}/v1/models/tiny", timeout=30).json()
    versions = status["model_version_status"]
    return max(int(version["version"]) for version in versions if version["state"] == "AVAILABLE")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("AWS_ACCESS_KEY_ID", None, "Unable to locate credentials"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1", "Could not connect to the endpoint"),
    ],
)
def test_a_store_that_cannot_be_used(hosts, key, value, message):
    shell = Shell(hosts[0].folder)
    shell.environment |= {**hosts[0].environment, "AWS_EC2_METADATA_DISABLED": "true"}
    shell.environment.pop(key)
    shell.environment |= {key: value} if value else {}
    config = (shell.folder / "tiny.yaml").read_text()
    (shell.folder / "data.yaml").write_text(config.partition("serving:")[0])
    command = shell.run("validate", "data.yaml")
    assert (command.returncode, command.stdout) == (2, "")
    assert "s3://models/da ta" in command.stderr
    assert "data.train" in command.stderr
    assert message in command.stderr
    assert "Traceback" not in command.stderr


def test_more_objects_than_one_page_and_a_missing_bucket(bucket, hosts):
    _, files = bucket
    for number in range(1001):
        files.pipe_file(f"models/many/{number}.tsv", b"a%d\tb\n" % number)
    config = (hosts[0].folder / "tiny.yaml").read_text()
    config = config.replace("s3://models/da ta", "s3://models/many")
    config = config.replace("train: train.tsv", "train: '[0-9]*.tsv'")
    config = config.replace("  eval: eval.tsv\n  test: test.tsv\n", "  split: {by: source}\n")
    path = Path(hosts[0].folder / "many.yaml")
    path.write_text(config)
    command = hosts[0].run("validate", "many.yaml")
    assert command.returncode == 0, command.stderr
    assert "1,001 files" in command.stdout
    path.write_text(config.replace("s3://models/many", "s3://nobody/many"))
    command = hosts[0].run("validate", "many.yaml")
    assert command.returncode == 2
    assert "s3://nobody/many" in command.stderr
    assert "bucket does not exist" in command.stderr
