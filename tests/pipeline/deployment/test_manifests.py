"""Rendered files: Kubernetes' own schemas, the server's flags, and what refuses to be rendered."""

import re
import warnings

import pytest
import yaml
from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

from regard.core.errors import UserError
from regard.pipeline.cli.commands import load
from regard.pipeline.deployment.manifests import TARGETS, Deployment, render
from regard.serving.server.model_config import VersionPolicy, read_models

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kubernetes_validate

CLAIM = "pvc://models/registry/de"


def deployment(**settings):
    return Deployment(**{"name": "en-de", "storage": CLAIM, **settings})


def documents(files):
    return {
        document["kind"] + "/" + document["metadata"]["name"]: document
        for name, text in files.items()
        if name.endswith(".yaml") and name != "kustomization.yaml"
        for document in yaml.safe_load_all(text)
    }


def pod_of(files):
    return documents(files)["Deployment/en-de"]["spec"]["template"]["spec"]


def compose_service(**settings):
    files = render(deployment(**{"storage": "/srv", **settings}), "compose")
    (service,) = yaml.safe_load(files["compose.yaml"])["services"].values()
    return files, service


@pytest.fixture(scope="module")
def kubernetes():
    return render(deployment(cpu="1500m"), "kubernetes")


@pytest.mark.parametrize("version", ["1.30", "1.34"])
def test_kubernetes_schemas_accept_the_files(kubernetes, version):
    result = documents(kubernetes)
    assert sorted(result) == [
        "Deployment/en-de",
        "HorizontalPodAutoscaler/en-de",
        "PodDisruptionBudget/en-de",
        "Service/en-de",
        "Service/en-de-pods",
        "ServiceAccount/en-de",
    ]
    for document in result.values():
        kubernetes_validate.validate(document, version, strict=True)


def test_kustomize_finds_its_files(kubernetes):
    kustomization = yaml.safe_load(kubernetes["kustomization.yaml"])
    (generator,) = kustomization["configMapGenerator"]
    names = [*kustomization["resources"], *generator["files"], "kustomization.yaml"]
    assert sorted(names) == sorted(kubernetes)
    config = {"name": "config", "configMap": {"name": generator["name"]}}
    assert config in pod_of(kubernetes)["volumes"]


def test_pods_are_restricted_and_stop_gracefully(kubernetes):
    pod = pod_of(kubernetes)
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert not pod["automountServiceAccountToken"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert 0 < pause < pod["terminationGracePeriodSeconds"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/v1/models/en-de", "port": "http"}


def test_selectors_find_the_pods(kubernetes):
    result = documents(kubernetes)
    spec = result["Deployment/en-de"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels
    assert result["PodDisruptionBudget/en-de"]["spec"]["selector"]["matchLabels"] == labels
    for service in ("Service/en-de", "Service/en-de-pods"):
        assert result[service]["spec"]["selector"] == labels
    ports = {port["name"] for port in spec["template"]["spec"]["containers"][0]["ports"]}
    assert {p["targetPort"] for p in result["Service/en-de"]["spec"]["ports"]} == ports


def test_the_registry_is_read_from_the_claim(kubernetes):
    pod = pod_of(kubernetes)
    mounts = {mount["name"]: mount for mount in pod["containers"][0]["volumeMounts"]}
    assert mounts["registry"] == {
        "name": "registry",
        "mountPath": "/models",
        "subPath": "registry/de",
        "readOnly": True,
    }
    claim = {"claimName": "models", "readOnly": True}
    assert {"name": "registry", "persistentVolumeClaim": claim} in pod["volumes"]
    (container,) = pod_of(render(deployment(storage="pvc://models"), "kubernetes"))["containers"]
    assert "subPath" not in container["volumeMounts"][0]


def test_threads_follow_the_cpus(kubernetes):
    (container,) = pod_of(kubernetes)["containers"]
    assert "--tensorflow_intra_op_parallelism=1" in container["args"]
    assert "--tensorflow_inter_op_parallelism=2" in container["args"]
    assert container["resources"]["requests"]["cpu"] == "1500m"
    lines = kubernetes["batching.config"].splitlines()
    assert "num_batch_threads { value: 2 }" in lines
    assert "pad_variable_length_inputs: true" in lines


@pytest.mark.parametrize(
    ("version", "policy"), [(None, VersionPolicy()), (3, VersionPolicy(None, specific=(3,)))]
)
def test_our_server_reads_the_configuration(tmp_path, version, policy):
    path = tmp_path / "models.config"
    path.write_text(render(deployment(version=version), "kubernetes")["models.config"])
    (model,) = read_models(path)
    assert (model.name, str(model.base_path), model.policy) == ("en-de", "/models/en-de", policy)


def test_labels_proposed_in_a_comment_are_valid(kubernetes):
    lines = kubernetes["models.config"].splitlines()
    proposed = [line.strip().removeprefix("#") for line in lines if line.strip().startswith("#   ")]
    assert len(proposed) == 3
    config = model_server_config_pb2.ModelConfig()
    text_format.Parse("\n".join(proposed), config)
    assert dict(config.version_labels) == {"stable": 3, "canary": 4}


def test_compose_mounts_the_registry_and_its_own_folder():
    files, service = compose_service(storage="/srv/a registry", memory="512Mi")
    assert service["image"] == "tensorflow/serving:2.19.1"
    mounts = {mount["target"]: mount for mount in service["volumes"]}
    assert mounts["/models"]["source"] == "/srv/a registry"
    assert all(mount["read_only"] for mount in mounts.values())
    names = [flag.rpartition("/config/")[2] for flag in service["command"] if "/config/" in flag]
    assert sorted([*names, "compose.yaml"]) == sorted(files)
    assert service["deploy"]["resources"]["limits"] == {"cpus": "2", "memory": "512m"}
    assert service["init"] is True
    assert all(address.startswith("127.0.0.1:") for address in service["ports"])


@pytest.mark.parametrize(
    ("cpu", "cpus", "threads"), [("500m", "0.5", 1), ("1500m", "1.5", 2), ("0.25", "0.25", 1)]
)
def test_compose_counts_processors_as_a_number(cpu, cpus, threads):
    _, service = compose_service(cpu=cpu)
    assert service["deploy"]["resources"]["limits"]["cpus"] == cpus
    assert f"--tensorflow_inter_op_parallelism={threads}" in service["command"]


@pytest.mark.parametrize(
    ("storage", "source"),
    [
        ("registry", "{folder}/registry"),
        ("/a$b/${HOME}", "/a$$b/$${HOME}"),  # Compose fills in variables
        ("/srv/modèles 😀", "/srv/modèles 😀"),
    ],
)
def test_compose_folders_are_absolute_and_escaped(tmp_path, monkeypatch, storage, source):
    monkeypatch.chdir(tmp_path)
    _, service = compose_service(storage=storage)
    assert service["volumes"][0]["source"] == source.replace("{folder}", str(tmp_path))


def test_kserve_takes_the_inference_service():
    """KServe's CRD: the fields of a component and a model in addition to pod and container."""
    files = render(deployment(storage="gs://b/registry"), "kserve")
    service = yaml.safe_load(files["inference_service.yaml"])
    kind = "serving.kserve.io/v1beta1", "InferenceService"
    assert (service["apiVersion"], service["kind"]) == kind
    assert set(service["spec"]) == {"predictor"}
    predictor = service["spec"]["predictor"]
    model = predictor.pop("model")
    component = {"minReplicas", "maxReplicas", "scaleMetric", "scaleTarget", "timeout"}
    of_a_model = {"modelFormat", "protocolVersion", "storageUri"}
    assert of_a_model < set(model)
    assert component == set(predictor)
    container = {key: value for key, value in model.items() if key not in of_a_model}
    spec = {"containers": [{"name": "kserve-container", **container}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": service["metadata"], "spec": spec}
    kubernetes_validate.validate(pod, "1.30", strict=True)
    assert model["storageUri"] == "gs://b/registry/en-de"
    assert model["image"] == "tensorflow/serving:2.19.1"
    # KServe's runtime and its defaults have limits of their own where we have none.
    for what in ("cpu", "memory"):
        assert model["resources"]["limits"][what] == model["resources"]["requests"][what]


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("tensorflow/serving:2.19.1", "2.19.1"),
        ("registry.example:5000/tensorflow/serving:2.20.0-gpu", "2.20.0"),
        ("tensorflow/serving:2.19@sha256:0123", "2.19"),
    ],
)
def test_image_versions(image, version):
    assert deployment(image=image).image_version == version


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"name": "en-de-"}, "MODEL: 'en-de-' is not a valid service name."),
        ({"name": "2-x"}, "MODEL: '2-x' is not a valid service name."),
        ({"name": "x" * 59}, f"MODEL: '{'x' * 59}' is not a valid service name."),
        ({"namespace": "a b"}, "--namespace: 'a b' is not a valid namespace."),
        ({"cpu": "two"}, "--cpu: 'two' is not a number of CPUs."),
        ({"cpu": "0"}, "--cpu: '0' is not a number"),
        ({"memory": "2GB"}, "--memory: '2GB' is not an amount"),
        ({"replicas": 3, "max_replicas": 2}, "--replicas: The range of 3 to 2 replicas is empty."),
        ({"image": "serving:latest"}, "--image: The tag of 'serving:latest' is not a version."),
        (
            {"image": "host:5000/serving"},
            "--image: The tag of 'host:5000/serving' is not a version.",
        ),
    ],
)
def test_invalid_settings(settings, complaint):
    with pytest.raises(UserError) as error:
        deployment(**settings)
    assert f"{error.value.where}: {error.value.message}".startswith(complaint)
    assert error.value.remedy


@pytest.mark.parametrize(
    ("target", "settings", "complaint"),
    [
        ("kubernetes", {"storage": "gs://bucket"}, "'gs://bucket' is not a folder in a Kubernetes"),
        ("kubernetes", {"storage": "pvc://m//x"}, "'pvc://m//x' is not a folder in a Kubernetes"),
        ("kubernetes", {"storage": "pvc://m/x/../y"}, "is not a folder in a Kubernetes volume"),
        ("compose", {"storage": "pvc://m"}, "'pvc://m' is not a folder"),
        ("kserve", {"storage": "/srv/registry"}, "'/srv/registry' is not a URI"),
        ("kserve", {"version": 3}, "KServe always serves the newest version"),
        ("kserve", {"name": "x" * 49}, f"MODEL: '{'x' * 49}' is too long for KServe"),
    ],
)
def test_unsupported_storage_names_and_versions(target, settings, complaint):
    with pytest.raises(UserError, match=re.escape(complaint)):
        render(deployment(**settings), target)


STORAGE = {"compose": "/srv/{}", "kubernetes": "pvc://m/{}", "kserve": "gs://{}"}


@pytest.mark.parametrize("odd", ['x": [1]', "x: y # z", "{a: b}", "'", "ü"])
@pytest.mark.parametrize("target", TARGETS)
def test_strings_stay_strings(target, odd):
    """A user's strings are escaped."""
    if target == "kserve":
        odd = odd.replace(" ", "")
    storage = STORAGE[target].format(odd)
    files = render(deployment(storage=storage, image=f"r{odd[-1]}/serving:2.19"), target)
    result = repr([list(yaml.safe_load_all(files[name])) for name in files if ".yaml" in name])
    inside = odd if target == "kubernetes" else storage
    assert repr(inside)[1:-1] in result or repr(storage + "/en-de")[1:-1] in result
    assert repr(f"r{odd[-1]}/serving:2.19")[1:-1] in result


@pytest.mark.parametrize("name", ["no", "on", "null", "true", "e1", "x" * 58])
def test_names_stay_names(name):
    claim = {"no": "123", "on": "no"}.get(name, "c")
    plan = deployment(name=name, storage=f"pvc://{claim}", namespace="null")
    result = documents(render(plan, "kubernetes"))
    for document in result.values():
        kubernetes_validate.validate(document, "1.30", strict=True)
        assert document["metadata"]["name"] in (name, f"{name}-pods")
        assert len(document["metadata"]["name"]) <= 63
    volumes = result[f"Deployment/{name}"]["spec"]["template"]["spec"]["volumes"]
    assert volumes[0]["persistentVolumeClaim"]["claimName"] == claim


@pytest.mark.parametrize("target", ["compose", "kubernetes"])
def test_ctranslate2_runs_in_our_own_server(target):
    settings = {"image": "example.com/regard:0.1.0", "quantization": "int8", "version": 2}
    if target == "compose":
        _, server = compose_service(**settings)
        command, environment = server["entrypoint"] + server["command"], server["environment"]
    else:
        pod = pod_of(render(deployment(**settings), target))
        (server,) = pod["containers"]
        command = server["command"] + server["args"]
        environment = {variable["name"]: variable["value"] for variable in server["env"]}
        assert pod["volumes"][-1]["emptyDir"] == {"sizeLimit": "2Gi"}
    assert environment["REGARD_HOME"] == "/tmp"
    assert command[:2] == ["regard", "serve"]
    options = load("serve").make_context("serve", command[2:]).params
    assert options["models"] == ["en-de@2"]
    assert (options["engine"], options["quantization"]) == ("ctranslate2", "int8")
    assert (options["host"], str(options["registry"])) == ("0.0.0.0", "/models")
