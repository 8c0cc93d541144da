"""Fuzzing: invalid requests are rejected with the right status, and the server keeps running."""

import json
import string

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.serving.server.requests import post, predict_request

# What a client must never see: paths of this machine, and source code.
HIDDEN = ("Traceback", "/tmp", "site-packages", 'File "', ".py", "See the server's log")
WORDS = [
    *("instances", "inputs", "signature_name", "b64", "source", "target", "points"),
    *("points_length", "serving_default", "align", "score", "__proto__", ""),
]
TEXTS = st.sampled_from(WORDS) | st.text(max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
ROWS = st.lists(VALUES | st.fixed_dictionaries({"source": VALUES}), max_size=4)
BODIES = st.one_of(
    # JSON of any kind, requests with anything in them, fragments of JSON in any order, bytes.
    VALUES.map(json.dumps),
    st.fixed_dictionaries(
        {"instances": ROWS}, optional={"signature_name": TEXTS, "inputs": VALUES}
    ).map(json.dumps),
    st.fixed_dictionaries({"inputs": VALUES}, optional={"signature_name": TEXTS}).map(json.dumps),
    st.lists(
        st.sampled_from([*"{}[]:,-", "1e5", "null", "NaN", "-Infinity", '"\\ud800"', '"/w=="'])
        | st.sampled_from(WORDS).map(json.dumps),
        max_size=14,
    ).map("".join),
    st.binary(max_size=40),
)
MODELS = st.sampled_from(
    ["reverser", "reverser/versions/1", "reverser/labels/stable", "sorter", "none", "nobody"]
)
THOROUGH = settings.get_current_profile_name() == "thorough"
MANY = settings(
    max_examples=5000 if THOROUGH else 200,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@MANY
@given(model=MODELS, body=BODIES)
def test_bodies(server, model, body):
    content = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    answer = post(server, f"{model}:predict", content)
    assert answer.status_code in (200, 400, 404, 501), answer.text
    if answer.status_code == 200:
        assert model.startswith(("reverser", "sorter"))
        assert {"predictions", "outputs"} & set(answer.json())
    else:
        notices = answer.json()["error"]
        assert notices
        # An error may repeat what was sent.
        sent = content.decode("utf-8", "replace")
        assert not [word for word in HIDDEN if word in notices and word not in sent]


@settings(MANY, max_examples=1000 if THOROUGH else 100)
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"]),
    path=st.lists(
        st.sampled_from(["v1", "models", "reverser", "versions", "labels", "metadata", "1", ".."])
        | st.sampled_from(["%2e%2e", "..%2f..%2fetc", "%00", "9" * 30, "reverser:predict", ""])
        | st.text(string.ascii_letters + string.digits + "~!$&'()*+,;=:@%-._ ", max_size=12),
        max_size=7,
    ),
)
def test_paths(server, method, path):
    url = "/" + "/".join(path)
    # A whole URL, because // would start a host name.
    answer = server.rest.request(method, f"{server.rest.base_url}{url}")
    assert answer.status_code in (200, 400, 404, 405), (answer.status_code, answer.text)
    assert not [word for word in HIDDEN if word in answer.text and word not in url]


@settings(MANY, max_examples=1000 if THOROUGH else 100)
@given(
    message=st.binary(max_size=60)
    | st.tuples(
        st.sampled_from(
            [
                predict_request(source=["abc", "de"], outputs=["score"]).SerializeToString(),
                predict_request(signature="align", source=["abc"], version=1).SerializeToString(),
                predict_request(
                    "sorter", points=[[[0.5, 1.0]]], points_length=[1]
                ).SerializeToString(),
            ]
        ),
        st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=4),
        st.integers(0, 200),
    ).map(lambda created: _damaged(*created))
)
def test_messages(server, message):
    """Invalid messages, truncated messages, and tensors with wrong shapes."""
    call = server.channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
    answer = call.future(message, timeout=20)
    refused = answer.exception()
    if refused:
        # No crash, no timeout.
        assert answer.code() in (
            grpc.StatusCode.INVALID_ARGUMENT,
            grpc.StatusCode.NOT_FOUND,
            grpc.StatusCode.FAILED_PRECONDITION,
            grpc.StatusCode.UNIMPLEMENTED,
            grpc.StatusCode.OUT_OF_RANGE,
        )
        assert not [word for word in HIDDEN if word in (answer.details() or "")]


@pytest.fixture(autouse=True)
def keeps_running(server):
    """The server works as before."""
    yield
    result = post(server, "reverser:predict", {"instances": ["ok"]}).json()
    assert result["predictions"][0]["translation"] == "KO"
    assert server.predictions.Predict(predict_request(source=["ok"])).outputs["translation"]


def _damaged(good: bytes, changes: list[tuple[int, int]], length: int) -> bytes:
    """Change some bytes of a message, and truncate it."""
    message = bytearray(good)
    for place, value in changes:
        if place < len(message):
            message[place] = value
    return bytes(message[:length])
