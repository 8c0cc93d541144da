"""The REST API: routes, bodies, status codes and errors."""

import grpc
import pytest
from grpc import StatusCode
from grpc_health.v1 import health_pb2

from regard.serving.server.batching import Batcher
from regard.serving.server.errors import ServingError
from regard.serving.server.runner import Runner
from tests.serving.server.requests import post, predict_request


def test_rows(server):
    answer = post(server, "reverser:predict", {"instances": ["abc", "é"]})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    rows = [{"score": -1.5, "translation": "CBA"}, {"score": -0.5, "translation": "É"}]
    assert answer.json() == {"predictions": rows}


def test_columns(server):
    body = {"inputs": {"source": ["ab"]}, "signature_name": "align"}
    result = post(server, "reverser:predict", body).json()["outputs"]
    assert result["target_pieces"] == [["B", "A", "</s>"]]
    assert result["alignment"][0][0] == [0.0, 0.5, 0.0]


def test_the_largest_input_counts_for_the_limit_of_rows(server):
    """This graph, like those of real models, reads the one source for all targets."""
    body = {"signature_name": "score", "inputs": {"source": ["ab"], "target": ["B"] * 256}}
    assert len(post(server, "reverser:predict", body).json()["outputs"]["score"]) == 256
    body["inputs"]["target"].append("B")
    answer = post(server, "reverser:predict", body)
    assert answer.status_code == 400
    assert answer.json() == {"error": "The request has 257 rows; the maximum is 256."}


@pytest.mark.parametrize(
    ("path", "weight"),
    [
        ("reverser", 0.5),
        ("reverser/versions/1", 1.0),
        ("reverser/versions/2", 0.5),
        ("reverser/versions/0001", 1.0),
        ("reverser/labels/stable", 1.0),
    ],
)
def test_versions_and_labels(server, path, weight):
    body = {"instances": ["a"], "signature_name": "align"}
    answer = post(server, f"{path}:predict", body)
    assert answer.json()["predictions"][0]["alignment"][0][0] == weight


def test_paths_but_not_names_ignore_case(server):
    for name, status in (("reverser", 200), ("Reverser", 404)):
        path = f"/V1/Models/{name}:PREDICT"
        assert server.rest.post(path, json={"instances": ["a"]}).status_code == status


def test_points(server):
    points = [[0.5, 0.0], [0.25, 1.0], [0.75, 0]]
    row = {"points": points, "points_length": 3}
    result = post(server, "sorter:predict", {"instances": [row]}).json()
    assert result["predictions"] == [{"order": [1, 0, 2], "order_length": 3, "score": -0.75}]


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("nobody:predict", b"", 404, "No version of model 'nobody'"),
        ("reverser:predict", b"", 400, "The request is not valid JSON"),
        ("nobody:predict", b'{"instances": [1]}', 404, "No version of model 'nobody'"),
        ("reverser/versions/9:predict", b'{"instances": [1]}', 404, "No version 9 of model"),
        ("reverser/labels/x:predict", b'{"instances": [1]}', 400, "has no version label 'x'."),
        (f"reverser/versions/{10**20}:predict", b"{}", 400, f"is larger than {2**63 - 1}."),
        (f"reverser/versions/{10**4000}:predict", b"{}", 400, f"is larger than {2**63 - 1}."),
        ("reverser:predict", b'{"instances": [["a"]]}', 400, "has the shape [1, 1], not [?]."),
        ("reverser:classify", b"{}", 400, "Unknown request: POST /v1/models/reverser:classify"),
        ("reverser", b"{}", 400, "Unknown request: POST /v1/models/reverser"),
        ("..%2Fetc:predict", b'{"instances": [1]}', 404, "No version of model '../etc'"),
        (
            "reverser:predict",
            b'{"signature_name": "no", "instances": [1]}',
            400,
            "The model has no signature 'no'.",
        ),
        (
            "sorter:predict",
            b'{"instances": [{"points": [[1, 2]], "points_length": 1}]}',
            400,
            "a row has fewer than the 2 points of model.min_points",
        ),
    ],
)
def test_rejected_requests(server, path, body, status, message):
    answer = post(server, path, body)
    assert answer.status_code == status
    assert message in answer.json()["error"]
    for hidden in ("Traceback", "/tmp", "site-packages", "{{node"):
        assert hidden not in answer.text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_other_methods(server, method):
    answer = server.rest.request(method, "/v1/models/reverser")
    assert answer.status_code == 400
    assert answer.json() == {"error": f"Unknown request: {method} /v1/models/reverser"}


def test_paths_outside_of_the_api(server):
    answer = server.rest.get("/v2/models")
    assert (answer.status_code, answer.headers["content-type"][:10]) == (404, "text/plain")
    assert server.rest.get("/v1/models").status_code == 400
    assert server.rest.get("/v1/nothing").status_code == 400


def test_options(server):
    path = "/v1/models/reverser"
    assert server.rest.options(path).status_code == 400
    assert server.rest.options(path, headers={"Origin": "https://a.b"}).status_code == 200


def test_status(server):
    result = server.rest.get("/v1/models/reverser")
    available = {"state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    versions = [{"version": version, **available} for version in ("2", "1")]
    assert result.json() == {"model_version_status": versions}
    one = server.rest.get("/v1/models/reverser/versions/1").json()["model_version_status"]
    assert [entry["version"] for entry in one] == ["1"]
    # A status request ignores a label.
    both = server.rest.get("/v1/models/reverser/labels/stable").json()["model_version_status"]
    assert len(both) == 2
    for path, message in [
        ("none", "Model 'none' has no versions."),
        ("nobody", "Model 'nobody' has no versions."),
        ("reverser/versions/9", "Model 'reverser' has no version 9."),
    ]:
        answer = server.rest.get(f"/v1/models/{path}")
        assert (answer.status_code, answer.json()) == (404, {"error": message})


def test_metadata(server):
    result = server.rest.get("/v1/models/reverser/versions/1/metadata").json()
    assert result["model_spec"] == {"name": "reverser", "signature_name": "", "version": "1"}
    signatures = result["metadata"]["signature_def"]["signature_def"]
    assert {"serving_default", "align", "score", "__saved_model_init_op"} <= set(signatures)
    source = signatures["align"]["inputs"]["source"]
    assert source["dtype"] == "DT_STRING"
    assert source["tensor_shape"] == {
        "dim": [{"size": "-1", "name": ""}],
        "unknown_rank": False,
    }
    assert signatures["align"]["method_name"] == "tensorflow/serving/predict"


def test_metrics(server):
    post(server, "reverser:predict", {"instances": ["a", "b"]})
    post(server, "made-up:predict", {"instances": ["a"]})
    text = server.rest.get("/monitoring/prometheus/metrics").text
    assert "# TYPE :tensorflow:serving:request_count counter\n" in text
    assert ':tensorflow:serving:request_count{model_name="reverser",status="OK"} ' in text
    assert (
        ':tensorflow:serving:request_latency_count{model_name="reverser",API="predict",'
        'entrypoint="REST"} ' in text
    )
    assert "made-up" not in text
    assert "# TYPE :tensorflow:serving:runtime_latency histogram" in text


def test_readiness_fails_and_liveness_does_not(server, monkeypatch):
    service = "tensorflow.serving.PredictionService"

    def check(name):
        call = server.channel.unary_unary("/grpc.health.v1.Health/Check")
        request = health_pb2.HealthCheckRequest(service=name).SerializeToString()
        return health_pb2.HealthCheckResponse.FromString(call(request)).status

    paths = ("/v2/health/ready", "/v2/health/live", "/v1/models/reverser")
    assert [server.rest.get(path).status_code for path in paths] == [200, 200, 200]
    assert (check(service), check("")) == (1, 1)
    monkeypatch.setattr(Runner, "is_overdue", True)
    answers = [server.rest.get(path) for path in paths]
    assert [answer.status_code for answer in answers] == [503, 200, 200]
    assert (check(service), check("")) == (2, 1)


def test_a_busy_server_says_when_to_try_again(server, monkeypatch):
    async def reject(*_):
        raise ServingError(StatusCode.UNAVAILABLE, "The batching queue is full.")

    monkeypatch.setattr(Batcher, "submit", reject)
    answer = post(server, "reverser:predict", {"instances": ["abc"]})
    assert (answer.status_code, int(answer.headers["retry-after"])) == (503, 1)
    with pytest.raises(grpc.RpcError) as caught:
        server.predictions.Predict(predict_request(source=["abc"]))
    metadata = {entry.key: entry.value for entry in caught.value.trailing_metadata()}
    assert metadata["grpc-retry-pushback-ms"] == "1000"
    answer = post(server, "reverser:predict", {"instances": [1]})
    assert (answer.status_code, "retry-after" in answer.headers) == (400, False)
