"""A real Kubernetes API server accepts the rendered files and those of `docs`.

Needs the programs of `python -m benchmarks.cluster.kubernetes_api build FOLDER`, with FOLDER in
the environment variable REGARD_KUBERNETES.
"""

import json
import os
from pathlib import Path

import pytest
import yaml

from benchmarks.cluster import kubernetes_api
from regard.pipeline.deployment.manifests import Deployment, render
from regard.pipeline.deployment.render import write

FOLDER = Path(os.environ.get("REGARD_KUBERNETES", "no-such-folder"))
DOCS = Path(__file__).resolve().parents[3] / "docs"
FLINK = DOCS / "flink.yaml"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(kubernetes_api.find_missing(FOLDER)),
        reason="no kube-apiserver: see benchmarks/cluster/kubernetes_api.py, REGARD_KUBERNETES",
    ),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with kubernetes_api.run_server(FOLDER, tmp_path_factory.mktemp("api")) as server:
        yield server


def create_namespace(server, name):
    """Create a namespace whose pods must be restricted."""
    labels = {
        f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    namespace["metadata"]["labels"] = labels
    server.kubectl("create", "-f", "-", text=json.dumps(namespace)).check_returncode()


def get(server, namespace, kind, name):
    result = server.kubectl("get", "-n", namespace, kind, name, "-o", "json")
    assert result.returncode == 0, result.stdout
    return json.loads(result.stdout)


def check_contains(stored, applied, path=""):
    """Check that the server stored everything that was applied."""
    if isinstance(applied, dict):
        for key, value in applied.items():
            assert key in stored, f"{path}.{key} is lost"
            check_contains(stored[key], value, f"{path}.{key}")
    elif isinstance(applied, list):
        assert len(stored) == len(applied), path
        for index, value in enumerate(applied):
            check_contains(stored[index], value, f"{path}[{index}]")
    else:
        assert str(stored) == str(applied), path


KUBERNETES = {
    "default": {},
    "version": {"version": 3, "storage": "pvc://models/registry/de", "cpu": "500m"},
    "null": {"name": "no", "storage": "pvc://123/{a: b}", "memory": "512Mi"},
    "x" * 63: {"name": "x" * 58, "storage": "pvc://c/ü 'q\" # z", "replicas": 6, "cpu": "1500m"},
}


@pytest.mark.parametrize("namespace", KUBERNETES)
def test_kubernetes(server, tmp_path, namespace):
    settings = {"name": "en-de", "storage": "pvc://models", **KUBERNETES[namespace]}
    plan = Deployment(namespace=namespace, **settings)
    if namespace != "default":
        create_namespace(server, namespace)
    write(render(plan, "kubernetes"), tmp_path)
    output = server.apply(tmp_path)
    assert output.count("serverside-applied") == 7
    assert "Warning" not in output
    rendered = server.kubectl("kustomize", tmp_path)
    for document in yaml.safe_load_all(rendered.stdout):
        name = document["metadata"]["name"]
        check_contains(get(server, namespace, document["kind"], name), document)
    # A controller would create this pod; admission checks it.
    template = get(server, namespace, "deployment", plan.name)["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", **template}
    pod["metadata"] |= {"name": "pod", "namespace": namespace}
    result = server.kubectl("create", "--dry-run=server", "-f", "-", text=json.dumps(pod))
    assert result.returncode == 0, result.stdout
    assert "Warning" not in result.stdout


@pytest.mark.parametrize(
    "settings",
    [
        {"storage": "gs://bucket/registry"},
        {"storage": "pvc://models/registry", "cpu": "500m", "batching": False, "name": "no"},
        {"storage": "s3://bucket/ü:'x", "name": "x" * 48, "replicas": 6},
    ],
)
def test_kserve(server, tmp_path, settings):
    plan = Deployment(namespace="default", **{"name": "en-de", **settings})
    write(render(plan, "kserve"), tmp_path)
    path = tmp_path / "inference_service.yaml"
    assert "serverside-applied" in server.apply(path)
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    check_contains(get(server, "default", "inferenceservice", plan.name), document)
    # KServe creates a deployment with this label for its pods (`GetRawServiceLabel`).
    labels = {"app": f"isvc.{plan.name}-predictor"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "kserve-container", "image": plan.image}]},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"{plan.name}-predictor"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    result = server.kubectl("create", "--dry-run=server", "-f", "-", text=json.dumps(deployment))
    assert result.returncode == 0, result.stdout


def test_flink(server):
    create_namespace(server, "flink")
    output = server.apply(FLINK, "--namespace=flink")
    assert output.count("serverside-applied") == 3
    for document in yaml.safe_load_all(FLINK.read_text(encoding="utf-8")):
        name = document["metadata"]["name"]
        check_contains(get(server, "flink", document["kind"], name), document)


@pytest.mark.parametrize("name", ["cronjob", "scheduler", "training"])
def test_training(server, name):
    path = DOCS / f"kubernetes-{name}.yaml"
    create_namespace(server, name)
    output = server.apply(path, f"--namespace={name}")
    assert "Warning" not in output
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        kind, identifier = document["kind"], document["metadata"]["name"]
        check_contains(get(server, name, kind, identifier), document)


def test_an_unknown_field_is_rejected(server, tmp_path):
    path = tmp_path / "flink.yaml"
    path.write_text(FLINK.read_text(encoding="utf-8").replace("podTemplate", "podTemplates"))
    with pytest.raises(RuntimeError, match="podTemplates"):
        server.apply(path)
