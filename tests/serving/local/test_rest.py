"""REST from outside: routes, bodies, codes and texts."""

from __future__ import annotations

import pytest

from tests.serving.local.asking import post


def test_rows(server):
    answer = post(server, "reverser:predict", {"instances": ["abc", "é"]})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.text == (
        '{\n    "predictions": [\n        {\n            "score": -1.5,\n'
        '            "translation": "CBA"\n        },\n        {\n            "score": -0.5,\n'
        '            "translation": "É"\n        }\n    ]\n}'
    )


def test_columns(server):
    body = {"inputs": {"source": ["ab"]}, "signature_name": "align"}
    found = post(server, "reverser:predict", body).json()["outputs"]
    assert found["target_pieces"] == [["B", "A", "</s>"]]
    assert found["alignment"][0][0] == [0.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("path", "weight"),
    [
        ("reverser", 0.5),
        ("reverser/versions/1", 1.0),
        ("reverser/versions/2", 0.5),
        ("reverser/versions/0001", 1.0),
        ("reverser/labels/stable", 1.0),
        ("Reverser", None),
    ],
)
def test_versions_and_labels(server, path, weight):
    body = {"instances": ["a"], "signature_name": "align"}
    answer = post(server, f"{path}:predict", body)
    if weight is None:
        assert answer.json() == {"error": "Servable not found for request: Latest(Reverser)"}
    else:
        assert answer.json()["predictions"][0]["alignment"][0][0] == weight


def test_the_path_may_be_in_capitals(server):
    assert server.rest.post("/V1/Models/reverser:PREDICT", content=b"{}").status_code == 400


def test_points(server):
    points = [[0.5, 0.0], [0.25, 1.0], [0.75, 0]]
    row = {"points": points, "points_length": 3}
    found = post(server, "sorter:predict", {"instances": [row]}).json()
    assert found["predictions"] == [{"order": [1, 0, 2], "order_length": 3, "score": -0.75}]


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("reverser:predict", b"", 400, "JSON Parse error: The document is empty"),
        ("reverser:predict", b"{}", 400, "Missing 'inputs' or 'instances' key"),
        ("nobody:predict", b"", 400, "JSON Parse error: The document is empty"),
        (
            "nobody:predict",
            b'{"instances": [1]}',
            404,
            "Servable not found for request: Latest(nobody)",
        ),
        (
            "reverser/versions/9:predict",
            b'{"instances": [1]}',
            404,
            "Servable not found for request: Specific(reverser, 9)",
        ),
        (
            "reverser/labels/canary:predict",
            b'{"instances": [1]}',
            400,
            "Unrecognized servable version label: canary",
        ),
        (
            f"reverser/versions/{10**20}:predict",
            b"{}",
            400,
            f"Failed to convert version: {10**20} to numeric.",
        ),
        (
            "reverser:predict",
            b'{"signature_name": "no", "instances": [1]}',
            400,
            'Serving signature name: "no" not found in signature def',
        ),
        (
            "reverser:predict",
            b'{"instances": [1.0]}',
            400,
            "Failed to process element: 0 of 'instances' list. Error: INVALID_ARGUMENT: JSON Value:"
            " 1.0 Type: Number is not of expected type: string",
        ),
        (
            "reverser:predict",
            b'{"instances": [["a"]]}',
            400,
            "Input source has the shape [1,1], which is not compatible with expected shape [?]",
        ),
        ("reverser:classify", b"{}", 400, "key 'examples' is expected and was not found"),
        (
            "reverser:regress",
            b'{"examples": [{}]}',
            400,
            "Expected regression signature method_name to be tensorflow/serving/regress. Was:"
            " tensorflow/serving/predict",
        ),
        ("reverser:guess", b"{}", 400, "Malformed request: POST /v1/models/reverser:guess"),
        ("reverser", b"{}", 400, "Malformed request: POST /v1/models/reverser"),
        ("..%2F..%2Fetc:predict", b'{"instances": [1]}', 404, "Latest(../../etc)"),
        (
            "sorter:predict",
            b'{"instances": [{"points": [[1, 2]], "points_length": 1}]}',
            400,
            "a row has fewer than the 2 points of model.least",
        ),
    ],
)
def test_what_is_refused(server, path, body, status, message):
    answer = post(server, path, body)
    assert answer.status_code == status
    assert message in answer.json()["error"]
    for hidden in ("Traceback", "/tmp", "site-packages", "{{node"):
        assert hidden not in answer.text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_other_methods(server, method):
    answer = server.rest.request(method, "/v1/models/reverser")
    assert answer.status_code == 400
    assert answer.json() == {"error": f"Malformed request: {method} /v1/models/reverser"}


def test_paths_outside_of_the_api(server):
    answer = server.rest.get("/v2/models")
    assert (answer.status_code, answer.headers["content-type"][:9]) == (404, "text/html")
    assert server.rest.get("/v1/models").json() == {"error": "Missing model name in request."}
    assert server.rest.get("/v1/nothing").status_code == 400


def test_options(server):
    path = "/v1/models/reverser"
    assert server.rest.options(path).status_code == 400
    assert server.rest.options(path, headers={"Origin": "https://a.b"}).status_code == 200


def test_status(server):
    found = server.rest.get("/v1/models/reverser")
    assert found.json() == {
        "model_version_status": [
            {
                "version": version,
                "state": "AVAILABLE",
                "status": {"error_code": "OK", "error_message": ""},
            }
            for version in ("2", "1")
        ]
    }
    one = server.rest.get("/v1/models/reverser/versions/1").json()["model_version_status"]
    assert [entry["version"] for entry in one] == ["1"]
    # A label is not looked at there.
    both = server.rest.get("/v1/models/reverser/labels/stable").json()["model_version_status"]
    assert len(both) == 2
    for path, message in [
        ("none", "Could not find any versions of model none"),
        ("nobody", "Could not find any versions of model nobody"),
        ("reverser/versions/9", "Could not find version 9 of model reverser"),
    ]:
        answer = server.rest.get(f"/v1/models/{path}")
        assert (answer.status_code, answer.json()) == (404, {"error": message})


def test_metadata(server):
    found = server.rest.get("/v1/models/reverser/versions/1/metadata").json()
    assert found["model_spec"] == {"name": "reverser", "signature_name": "", "version": "1"}
    signatures = found["metadata"]["signature_def"]["signature_def"]
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
    post(server, "made-up-by-somebody:predict", {"instances": ["a"]})
    text = server.rest.get("/monitoring/prometheus/metrics").text
    assert "# TYPE :tensorflow:serving:request_count counter\n" in text
    assert ':tensorflow:serving:request_count{model_name="reverser",status="OK"} ' in text
    assert (
        ':tensorflow:serving:request_latency_count{model_name="reverser",API="predict",'
        'entrypoint="REST"} ' in text
    )
    assert "made-up" not in text
    assert "# TYPE :tensorflow:serving:runtime_latency histogram" in text
