"""A compiled pipeline, every node by Kubeflow's own driver and launcher.

``REGARD_KFP_BINARIES`` names a folder with the files ``driver`` and ``launcher-v2`` of Kubeflow
Pipelines, as in its images ``kfp-driver`` and ``kfp-launcher``.
"""

import json
import os
import shutil
import sqlite3
import urllib.request
from pathlib import Path

import pytest

from regard.pipeline.config.config import NODES
from regard.pipeline.runners.kubeflow.compiler import compile_pipeline
from regard.pipeline.runners.kubeflow.settings import load_for_cluster
from tests.e2e.conftest import CONFIG, write_data
from tests.e2e.kubeflow_backend import BUCKET, serve_backend
from tests.e2e.test_kubeflow import KUBEFLOW

pytestmark = pytest.mark.slow
BINARIES = Path(os.environ.get("REGARD_KFP_BINARIES", "/nonexistent"))
POD = """
  pods:
    default:
      environment: {OMP_NUM_THREADS: "1"}
      secret_environment: {A_PROXY: proxy/url}
      secret_folders: {certificates: /etc/certificates}
      image_pull_secrets: [registry]
      node_selector: {disk: ssd}
      tolerations: [{key: gpu, effect: NoSchedule}]
      scratch: 5
"""


def is_possible() -> str:
    """Return why the test cannot run here; empty if it can."""
    if missing := [name for name in ("driver", "launcher-v2") if not (BINARIES / name).is_file()]:
        return f"REGARD_KFP_BINARIES has no {' and no '.join(missing)}"
    if missing := [name for name in ("moto_server", "openssl") if not shutil.which(name)]:
        return f"{' and '.join(missing)} is not installed"
    return "" if os.geteuid() == 0 else "mount namespaces need root"


@pytest.fixture(scope="module")
def backend(tmp_path_factory):
    if reason := is_possible():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("backend")
    shared = folder / "shared"
    shared.mkdir()
    config = shared / "tiny.yaml"
    text = CONFIG.format(data=shared / "data", epochs=2) + KUBEFLOW.format(home=shared / "regard")
    config.write_text(text + POD.removeprefix("\n"))
    write_data(shared / "data")
    pipeline = compile_pipeline(load_for_cluster(config))
    with serve_backend(folder, BINARIES, pipeline) as (backend, store):
        backend.run({"max_epochs": 3, "seed": 5})
        yield backend, store


def test_every_node_completes_and_the_model_is_pushed(backend):
    run, _ = backend
    assert set(run.patches) == set(NODES)
    with sqlite3.connect(run.folder / "metadata.db") as database:
        (states,) = zip(*database.execute("select last_known_state from Execution"), strict=True)
    assert sorted(states)[:-1] == [3] * len(NODES)  # COMPLETE; the last is the pipeline itself
    version = run.folder / "shared" / "regard" / "registry" / "tiny" / "1"
    assert (version / "saved_model.pb").is_file()
    record = json.loads((version / "regard.json").read_text())
    assert record["config"]["training"]["max_epochs"] == 3
    assert record["config"]["training"]["seed"] == 5


def test_nodes_download_locations_and_upload_locations_and_reports(backend):
    run, store = backend
    listing = urllib.request.urlopen(f"{store}?list-type=2", timeout=30).read().decode()
    keys = [part.partition("</Key>")[0] for part in listing.split("<Key>")[1:]]
    names = {key.rpartition("/")[2] for key in keys}
    assert {"regard_location.json", "report.html"} <= names
    assert names - {"regard_location.json", "report.html"} == {"executor-logs-0"}
    content = run.folder / "shared" / "regard" / "artifacts" / BUCKET
    assert any(content.rglob("*.gz"))


def test_pods_have_the_settings_of_the_configuration(backend):
    run, _ = backend
    pod = run.patches["Pusher"]
    (container,) = pod["containers"]
    assert {"name": "OMP_NUM_THREADS", "value": "1"} in container["env"]
    secret = {"secretKeyRef": {"name": "proxy", "key": "url"}}
    assert {"name": "A_PROXY", "valueFrom": secret} in container["env"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes["regard"]["persistentVolumeClaim"] == {"claimName": "regard"}
    assert volumes["certificates"]["secret"]["secretName"] == "certificates"
    assert volumes["regard-tmp"]["emptyDir"] == {"sizeLimit": "5G"}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert (mounts["certificates"], mounts["regard-tmp"]) == ("/etc/certificates", "/tmp")
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["nodeSelector"] == {"disk": "ssd"}
    assert pod["tolerations"] == [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
