"""What is handed to a cluster: parameters of their types; pipelines told from configurations."""

import pytest

from components.errors import UserError
from pipeline.kubeflow.given import given_parameters
from pipeline.kubeflow.package import is_pipeline, read
from tests.pipeline.kubeflow.pipelines import CONFIG

TYPES = {
    "epochs": "NUMBER_INTEGER",
    "rate": "NUMBER_DOUBLE",
    "name": "STRING",
    "fast": "BOOLEAN",
    "sizes": "LIST",
}
PARAMETERS = {name: {"parameterType": kind} for name, kind in TYPES.items()}
SPEC = {"root": {"inputDefinitions": {"parameters": PARAMETERS}}}


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("epochs=3", 3),
        ("rate=0.5", 0.5),
        ("name=3", "3"),
        ("name=a=b", "a=b"),
        ("name=", ""),
        ("fast=true", True),
        ("sizes=[1, 2]", [1, 2]),
        ("epochs=three", "three"),  # for lint to refuse
        ("other=3", "3"),
    ],
)
def test_a_value_is_read_as_its_type_wants_it(pair, value):
    (found,) = given_parameters([pair], SPEC).values()
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("pairs", [["epochs"], ["=3"], ["epochs=3", "epochs=4"]])
def test_what_is_no_parameter_is_refused(pairs):
    with pytest.raises(UserError) as caught:
        given_parameters(pairs, SPEC)
    assert caught.value.where == "--param"


def test_a_configuration_is_no_pipeline():
    assert not is_pipeline(CONFIG)
    assert not is_pipeline("a: [b")
    assert is_pipeline("schemaVersion: 2.0.0")
    assert is_pipeline('{"pipelineSpec": {}}')


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        read(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"\xe4")
    with pytest.raises(UserError, match="not UTF-8"):
        read(tmp_path / "latin.yaml")
