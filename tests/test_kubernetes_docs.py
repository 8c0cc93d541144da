"""The Kubernetes objects in docs/ fit the image, each other, and the command line."""

import json
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("cronjob", "scheduler", "training")


def documents(name):
    text = (ROOT / f"docs/kubernetes-{name}.yaml").read_text("utf-8")
    return list(yaml.safe_load_all(text))


def pod_spec(name):
    spec = documents(name)[-1]["spec"]
    return spec.get("jobTemplate", {"spec": spec})["spec"]["template"]["spec"]


@pytest.mark.parametrize("name", NAMES)
def test_pods_are_restricted_and_use_the_image_and_the_volume(name):
    spec = pod_spec(name)
    (container,) = spec["containers"]
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    user = spec["securityContext"]["runAsUser"]
    assert f"USER {user}:{spec['securityContext']['runAsGroup']}\n" in dockerfile
    assert spec["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert f"REGARD_HOME={mounts['regard']}" in dockerfile
    assert set(mounts) == {volume["name"] for volume in spec["volumes"]}
    assert mounts["tmp"] == "/tmp"  # Matplotlib and TensorFlow write to it
    assert f"{mounts['regard']}/pipeline.yaml" in " ".join(container["args"])


def test_the_cronjob_does_not_repeat_runs_with_the_same_result():
    job = documents("cronjob")[0]["spec"]["jobTemplate"]["spec"]
    (rule,) = job["podFailurePolicy"]["rules"]
    assert rule["onExitCodes"]["values"] == [2, 3]
    assert job["template"]["spec"]["restartPolicy"] == "Never"  # required by the policy
    assert job["template"]["spec"]["containers"][0]["args"][-1] == "--once"


def test_the_names_of_the_workers_are_those_of_their_pods():
    service, job = documents("training")
    spec = pod_spec("training")
    (container,) = spec["containers"]
    name, port = service["metadata"]["name"], container["ports"][0]["containerPort"]
    assert spec["subdomain"] == name
    assert service["spec"]["selector"] == {"batch.kubernetes.io/job-name": job["metadata"]["name"]}
    text = next(item["value"] for item in container["env"] if item["name"] == "TF_CONFIG")
    workers = [f"{job['metadata']['name']}-{index}.{name}:{port}" for index in range(2)]
    for index in range(job["spec"]["completions"]):
        config = json.loads(text.replace("$(WORKER)", str(index)))
        assert config["cluster"]["worker"] == workers
        assert config["task"] == {"type": "worker", "index": index}
