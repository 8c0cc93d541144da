import json

import grpc
import pytest
from grpc import StatusCode

from regard.core.characters import BLANK
from regard.models.tags import add_tag
from regard.serving.contract import CONTRACT
from regard.serving.server.errors import ServingError
from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import ManagerOptions
from regard.serving.server.tags import TagCheck, blank_pattern
from tests import fake_models
from tests.serving.server.requests import post, predict_request

TAGS = ["de", "pt-BR", "c++"]


@pytest.fixture
def check() -> TagCheck:
    return TagCheck({**fake_models.Reverser().contract(), "tags": TAGS, "blank": BLANK})


@pytest.mark.parametrize(
    "source",
    [
        "<de> A dog.",
        "  <pt-BR>A dog.",
        "\u3000<c++> A",
        "<de>",
        "",
        " \u200b\n",
        "\ufffd",
        "<de><de>",
    ],
)
def test_sources_with_a_tag_and_blank_ones(check, source):
    check.run([b"<de> first", source.encode()])


@pytest.mark.parametrize("tag", TAGS)
def test_the_tags_that_the_client_writes(check, tag):
    check.run([add_tag(tag, text).encode() for text in ("A dog runs.", " ", "")])


@pytest.mark.parametrize(
    "source",
    [
        b"A dog.",
        b"<fr> A dog.",
        b"A <de> dog.",
        b"<DE> A dog.",
        b"<de A dog.",
        b"<c+++> A",
    ],
)
def test_the_first_source_without_a_tag_is_named(check, source):
    with pytest.raises(ServingError) as caught:
        check.run([b"<de> A dog.", source, b"none"])
    assert caught.value.code is StatusCode.INVALID_ARGUMENT
    assert "Row 1 of the input source" in caught.value.message
    assert "<de>, <pt-BR>, <c++>" in caught.value.message


def test_long_sources_and_many_tags():
    tags = [f"t{number}" for number in range(200)]
    check = TagCheck({**fake_models.Reverser().contract(), "tags": tags, "blank": BLANK})
    check.run([b"<t199> " + b"a" * (1 << 22), b" " * (1 << 22)])
    with pytest.raises(ServingError) as caught:
        check.run([b"a" * (1 << 22)])
    assert len(caught.value.message) < 200


def test_blank_sources_may_begin_with_a_tag():
    contract = fake_models.Reverser().contract()
    for keys, blank, other in (
        ({}, ["", " \n"], ["<de>", "a"]),
        ({"tags": TAGS}, ["", " <c++>", "<de> "], ["<fr>", "<de> a", "<de><de>"]),
        ({"blank": "[_]*"}, ["", "__"], [" ", "_a"]),
    ):
        pattern = blank_pattern({**contract, **keys})
        assert all(pattern.fullmatch(text) for text in blank)
        assert not any(pattern.fullmatch(text) for text in other)


def test_both_apis_refuse_sources_without_a_tag(run, tmp_path):
    """The other rows of a batch, which may be of other clients, are computed."""
    fake_models.save(fake_models.Reverser(), tmp_path / "tagged" / "1")
    contract = {**fake_models.Reverser().contract(), "tags": ["de", "fr"]}
    (tmp_path / "tagged" / "1" / CONTRACT).write_text(json.dumps(contract), encoding="utf-8")
    server = run([ModelConfig("tagged", tmp_path / "tagged")], ManagerOptions(poll_seconds=0))
    for signature in ("", "align"):
        body = {"signature_name": signature, "inputs": {"source": ["<de> a", "b"]}}
        answer = post(server, "tagged:predict", body)
        assert answer.status_code == 400
        assert answer.json()["error"].startswith("Row 1 of the input source")
        request = predict_request("tagged", signature, source=["<de> a", "b"])
        with pytest.raises(grpc.RpcError) as caught:
            server.predictions.Predict(request, timeout=30)
        assert caught.value.code() is StatusCode.INVALID_ARGUMENT
    answer = post(server, "tagged:predict", {"inputs": {"source": ["<de> a", ""]}})
    assert answer.json()["outputs"]["translation"] == ["A >ED<", ""]
