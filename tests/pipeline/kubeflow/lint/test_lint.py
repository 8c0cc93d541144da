"""What open-source Kubeflow Pipelines would refuse or pass over: TFX's own pipelines, and ours."""

import copy

import pytest
import yaml

from components.errors import UserError
from pipeline.kubeflow.compiling import as_text, compiled
from pipeline.kubeflow.given import given_parameters
from pipeline.kubeflow.lint import lint, refuse
from pipeline.kubeflow.settings import load_for_cluster
from tests.pipeline.kubeflow.pipelines import compile_tfx, write_config


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ours")
    return as_text(compiled(load_for_cluster(write_config(folder))))


@pytest.fixture
def spec(ours):
    return list(yaml.safe_load_all(ours))


def rules(text, given=None):
    return {finding.rule: finding for finding in lint(text, given)}


def changed(documents):
    return rules(yaml.safe_dump_all(documents))


def csv(**options):
    from tfx.components import CsvExampleGen

    return CsvExampleGen(input_base="gs://bucket/data", **options)


def test_our_own_pipeline_has_no_fault(ours):
    assert lint(ours) == []
    assert lint(ours, {"seed": 5, "max_epochs": 3}) == []


def test_a_resolver_does_not_run(tmp_path):
    from tfx.dsl.components.common.resolver import Resolver
    from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import (
        LatestBlessedModelStrategy,
    )
    from tfx.types import Channel
    from tfx.types.standard_artifacts import Model, ModelBlessing

    resolver = Resolver(
        strategy_class=LatestBlessedModelStrategy,
        model=Channel(type=Model),
        model_blessing=Channel(type=ModelBlessing),
    ).with_id("latest_blessed")
    text = compile_tfx([resolver], tmp_path / "p.yaml").read_text()
    found = [finding for finding in lint(text) if finding.rule == "executor"]
    assert len(found) == 2  # one for the blessing, one for the model
    for finding in found:
        assert finding.effect == "refused"
        assert finding.key.startswith("deploymentSpec.executors.latest_blessed")
        assert text.splitlines()[finding.line - 1].strip() == "resolver:"


def test_a_driver_of_a_file_based_example_gen_is_passed_over(tmp_path):
    text = compile_tfx([csv()], tmp_path / "p.yaml").read_text()
    (finding,) = lint(text)
    assert (finding.rule, finding.effect) == ("driver", "ignored")
    assert "spans" in finding.message
    assert text.splitlines()[finding.line - 1].strip() == "preCacheCheck:"


def test_tfx_own_entry_point_cannot_read_input_artifacts(tmp_path):
    from tfx.components import StatisticsGen

    examples = csv()
    components = [examples, StatisticsGen(examples=examples.outputs["examples"])]
    found = rules(compile_tfx(components, tmp_path / "p.yaml").read_text())
    assert set(found) == {"driver", "entry-point"}
    assert "StatisticsGen" in found["entry-point"].key
    assert found["entry-point"].effect == "fails"


def test_schema_2_0_and_a_job_do_not_run(tmp_path):
    text = compile_tfx([csv()], tmp_path / "p.json", schema_2_1=False).read_text()
    found = rules(text)
    assert set(found) == {"job", "schema", "constant", "driver"}
    assert "2.0.0" in found["schema"].message
    assert found["schema"].key == "pipelineSpec.schemaVersion"


@pytest.mark.parametrize("store", ["s3", "minio", "hdfs"])
def test_stores_that_tfx_has_no_client_of(tmp_path, store):
    from tfx.components import CsvExampleGen

    examples = CsvExampleGen(input_base=f"{store}://bucket/data")
    found = rules(compile_tfx([examples], tmp_path / "p.yaml").read_text())
    assert set(found) == {"driver", "storage"}
    assert f"'{store}://bucket/data'" in found["storage"].message


def test_a_store_deep_inside_of_a_constant(tmp_path):
    from tfx.components import Pusher
    from tfx.dsl.components.common.importer import Importer
    from tfx.proto import pusher_pb2
    from tfx.types.standard_artifacts import Model

    model = Importer(source_uri="gs://bucket/m", artifact_type=Model).with_id("model")
    place = pusher_pb2.PushDestination.Filesystem(base_directory="s3://bucket/serving")
    pusher = Pusher(
        model=model.outputs["result"],
        push_destination=pusher_pb2.PushDestination(filesystem=place),
    )
    found = rules(compile_tfx([model, pusher], tmp_path / "p.yaml").read_text())
    assert "'s3://bucket/serving'" in found["storage"].message


def test_an_importer_of_a_local_folder_is_passed_over(tmp_path):
    from tfx.dsl.components.common.importer import Importer
    from tfx.types.standard_artifacts import Schema

    def imported(uri):
        importer = Importer(source_uri=uri, artifact_type=Schema).with_id("schema")
        return rules(compile_tfx([importer], tmp_path / "p.yaml").read_text())

    assert imported("gs://bucket/schema") == {}
    assert set(imported("/data/schema")) == {"storage"}


def task(documents, name="Trainer"):
    return documents[0]["root"]["dag"]["tasks"][name]


def container(documents, name="Trainer"):
    return documents[0]["deploymentSpec"]["executors"][f"{name}_executor"]["container"]


def name_it(name):
    return lambda d: d[0]["pipelineInfo"].update(name=name)


def own_component(documents):
    documents[0]["components"]["loop"] = {
        "dag": {"tasks": {"again": {"componentRef": {"name": "loop"}}}}
    }
    documents[0]["root"]["dag"]["tasks"]["loop"] = {"componentRef": {"name": "loop"}}


CHANGES = {
    "schema": lambda d: d[0].pop("schemaVersion"),
    "name": name_it("Tiny Pipeline"),
    "root": lambda d: d[0].pop("root"),
    "tasks": lambda d: d[0]["root"]["dag"].pop("tasks"),
    "storage": lambda d: d[0].update(defaultPipelineRoot="/data/root"),
    "shape": lambda d: d[0].update(stages=[]),
    "component-ref": lambda d: d[0]["components"].pop("Trainer"),
    "executor-label": lambda d: d[0]["deploymentSpec"]["executors"].pop("Trainer_executor"),
    "component": lambda d: d[0]["components"]["Trainer"].pop("executorLabel"),
    "circle": own_component,
    "dependency": lambda d: task(d)["dependentTasks"].append("Tuner"),
    "iterator": lambda d: task(d).update(artifactIterator={"itemInput": "examples"}),
    "image": lambda d: container(d).pop("image"),
    "command": lambda d: [container(d).pop(key) for key in ("command", "args")],
    "accelerator": lambda d: container(d).update(
        resources={"accelerator": {"type": "NVIDIA_TESLA_T4", "count": 1}}
    ),
    "resources": lambda d: container(d).update(resources={"cpuRequest": 4.0, "cpuLimit": 2.0}),
    "constant": lambda d: task(d)["inputs"]["parameters"].update(
        run_fn={"runtimeValue": {"constantValue": {"stringValue": "run"}}}
    ),
    "input": lambda d: task(d)["inputs"]["parameters"].pop("run_fn"),
    "parameter-type": lambda d: d[0]["root"]["inputDefinitions"]["parameters"].update(
        lengths={"type": "INT"}
    ),
    "parameter-default": lambda d: d[0]["root"]["inputDefinitions"]["parameters"]["seed"].update(
        defaultValue="seven"
    ),
    "artifact-type": lambda d: d[0]["components"]["Trainer"]["outputDefinitions"]["artifacts"][
        "model"
    ].update(artifactType={"schemaUri": "gs://types/model"}),
    "platform": lambda d: d[1]["platforms"]["kubernetes"]["deploymentSpec"]["executors"].update(
        Tuner_executor={}
    ),
    "document": lambda d: d.append({"notes": "none"}),
    "several": lambda d: d.append(copy.deepcopy(d[0])),
}


@pytest.mark.parametrize("rule", CHANGES)
def test_each_rule_finds_what_it_is_for(spec, rule):
    CHANGES[rule](spec)
    assert rule in changed(spec)
    assert all(finding.remedy for finding in changed(spec).values())


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a_b", "a" * 129])
def test_names_that_the_server_refuses(spec, name):
    name_it(name)(spec)
    assert set(changed(spec)) == {"name"}


@pytest.mark.parametrize("name", ["a", "a.b-c.d", "0", "a" * 128])
def test_names_that_it_takes(spec, name):
    name_it(name)(spec)
    assert changed(spec) == {}


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"seed": "five"}, "parameter-value"),
        ({"seed": 5.5}, "parameter-value"),
        ({"seed": True}, "parameter-value"),
        ({"sede": 5}, "parameter-unknown"),
    ],
)
def test_what_a_run_is_given_must_fit(ours, given, rule):
    assert set(rules(ours, given)) == {rule}


def test_a_parameter_without_a_default_must_be_given(spec):
    for key in ("defaultValue", "isOptional"):
        del spec[0]["root"]["inputDefinitions"]["parameters"]["seed"][key]
    text = yaml.safe_dump_all(spec)
    assert rules(text) == {}
    assert set(rules(text, {})) == {"parameter-required"}
    assert rules(text, {"seed": 3}) == {}


@pytest.mark.parametrize("name", ["123", "12e3", "true", "2020-01-01", "[a]", "{a: b}"])
def test_a_name_that_is_read_as_something_else(ours, name):
    text = ours.replace("  name: tiny\n", f"  name: {name}\n")
    assert "name" in rules(text)
    assert "no text" in rules(text)["name"].message


@pytest.mark.parametrize(
    ("text", "rule"),
    [("", "empty"), ("a: [b", "yaml"), ("a: b", "none"), ("- a", "none"), ("\tx", "yaml")],
)
def test_files_that_are_no_pipelines(text, rule):
    assert set(rules(text)) == {rule}


ODD = [
    (0, "root"),
    (0, "root", "inputDefinitions"),
    (0, "root", "inputDefinitions", "parameters"),
    (0, "root", "dag", "tasks", "Trainer"),
    (0, "pipelineInfo"),
    (0, "deploymentSpec"),
    (0, "deploymentSpec", "executors"),
    (0, "components", "Trainer"),
    (1, "platforms"),
    (1, "platforms", "kubernetes"),
    (1, "platforms", "kubernetes", "deploymentSpec"),
]


@pytest.mark.parametrize("value", [5, True, "x", ["a"]])
def test_values_of_another_shape_are_found_and_break_nothing(spec, value):
    for path in ODD:
        broken = copy.deepcopy(spec)
        inner = broken
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        text = yaml.dump_all(broken, Dumper=yaml.CSafeDumper)
        given_parameters(["seed=3"], broken[0])
        assert lint(text, {"seed": 3}) != [], path


def test_the_line_is_that_of_the_fault(ours):
    lines = ours.replace("schemaVersion: 2.1.0", "schemaVersion: 2.0.0").splitlines()
    (finding,) = lint("\n".join(lines))
    assert lines[finding.line - 1] == "schemaVersion: 2.0.0"


def test_findings_add_up_to_one_error(ours):
    refuse([], "p.yaml")
    findings = lint(ours, {"sede": 5, "seed": "x"})
    with pytest.raises(UserError) as caught:
        refuse(findings, "p.yaml")
    assert str(caught.value).count("p.yaml:") == 2
