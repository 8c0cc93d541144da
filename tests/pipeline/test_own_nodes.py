"""Nodes of the user's own in the graph: checks, connections, and keys of the cache."""

import json
import sys

import pytest
from tfx.dsl.compiler import compiler
from tfx.dsl.components.common.importer import Importer
from tfx.dsl.components.common.resolver import Resolver
from tfx.dsl.input_resolution.strategies.latest_artifact_strategy import LatestArtifactStrategy
from tfx.types.channel import Channel
from tfx.types.standard_artifacts import Model, Schema

from regard.components.nodes import Pusher
from regard.core.errors import UserError
from regard.pipeline.config import load
from regard.pipeline.context import local_context
from regard.pipeline.graph import build_pipeline
from regard.pipeline.own_nodes import CODE, check_own_code
from regard.pipeline.runners import local
from regard.pipeline.workspace import Workspace
from tests.pipeline.own_code import FUNCTIONS, NODE, PIPELINE, edit, write_modules

CONFIG = """
name: tiny
data: {train: train.tsv}
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Load a configuration with a section ``pipeline``, in a folder with the modules."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("PYTHONPATH", "")
    write_modules(tmp_path)
    (tmp_path / "train.tsv").write_text("a\tA\nb\tB\n")

    def read(section=PIPELINE):
        _forget_modules()
        path = tmp_path / "tiny.yaml"
        path.write_text(CONFIG + section)
        return load(path, home=tmp_path)

    yield read
    _forget_modules()


def _forget_modules():
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


def build(config, tmp_path, extra=None):
    pipeline = build_pipeline(config, local_context(config, Workspace(tmp_path)), extra)
    return pipeline, {node.id: node for node in pipeline.components}


def test_the_nodes_of_the_documentation_are_connected(read, tmp_path):
    config = read()
    check_own_code(config)
    pipeline, nodes = build(config, tmp_path)
    assert nodes["Profanity"].exec_properties["limit"] == 5
    assert nodes["Pusher"].inputs["own_blessing"].producer_component_id == "Gate"
    order = local.node_ids(compiler.Compiler().compile(pipeline))
    before_training = ["CorpusGen", "Profanity", "TokenizerTrainer"]
    assert sorted(before_training, key=order.index) == before_training
    gate = ["Profanity", "Gate", "Pusher"]
    assert sorted(gate, key=order.index) == gate


def test_code_is_part_of_the_key_of_the_nodes_that_it_is_about(read, tmp_path):
    def properties():
        _, nodes = build(read(), tmp_path)
        return {name: dict(node.exec_properties) for name, node in nodes.items()}

    first = properties()
    assert {name for name in first if CODE in first[name]} == {"Profanity", "Gate"}
    edit(tmp_path / "own_gate.py", "{content['count']} rows", "{content['count']} texts")
    second = properties()
    assert {name for name in first if first[name] != second[name]} == {"Gate", "Pusher"}
    edit(tmp_path / "own_nodes.py", "number = 0", "number = 1")
    third = properties()  # the gate imports the module of the node
    changed = {name for name in first if second[name] != third[name]}
    assert changed == {"Profanity", "Gate", "Pusher"}


def test_code_that_may_rewire_the_trainer_is_another_recipe(read, tmp_path):
    """The Trainer itself compares the data, so that a new gate does not train again."""

    def settings(section):
        config = read(section)
        nodes = build(config, tmp_path)[1]
        record = json.loads(nodes["Pusher"].exec_properties["record"])
        trainer = nodes["Trainer"].exec_properties["custom_config"]
        return trainer, record["recipe"], record["config"].get("pipeline", {}).get("extra")

    alone = settings("")
    assert alone == settings(f"pipeline:{NODE}")  # nodes cannot change Regard's inputs
    assert alone[2] is None
    versions = [settings(PIPELINE), settings(PIPELINE.replace("limit: 5", "limit: 6"))]
    edit(tmp_path / "own_gate.py", "rows have", "texts have")
    versions.append(settings(PIPELINE))
    (trainer,) = {version[0] for version in versions}
    assert json.loads(trainer)["run"]["is_rewirable"]
    assert not json.loads(alone[0])["run"]["is_rewirable"]
    assert len({recipe for _, recipe, _ in [alone, *versions]}) == 4
    assert {extra for *_, extra in versions} == {"own_gate:extra"}
    (tmp_path / "moved").mkdir()
    for path in tmp_path.glob("own_*.py"):
        path.rename(tmp_path / "moved" / path.name)
    assert settings(f"{PIPELINE}  folder: moved\n") == versions[-1]


def test_a_function_in_python_sees_all_nodes(read, tmp_path):
    received = {}

    def extra(nodes):
        received.update(nodes)
        gate = sys.modules["own_nodes"].Profanity(examples=nodes["CorpusGen"].outputs["examples"])
        nodes["Pusher"].add_upstream_node(gate.with_id("Second"))
        return [gate]

    _, nodes = build(read(f"pipeline:{NODE}"), tmp_path, extra)
    assert isinstance(received["Pusher"], Pusher)
    assert json.loads(received["Trainer"].exec_properties["custom_config"])["run"]["is_rewirable"]
    assert set(nodes) == {*received, "Second"}
    assert nodes["Second"] in nodes["Pusher"].upstream_nodes


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("lambda nodes: [3]", "not one of int"),
        ("lambda nodes: 3", "TypeError"),
        ("lambda nodes: [nodes['Trainer']]", "there already is a node 'Trainer'"),
        ("lambda nodes: nodes['Tuner']", "KeyError"),
        ("lambda nodes: exit(0)", "SystemExit: 0"),
        ("3", "is no function"),
    ],
)
def test_a_wrong_function_is_an_error_of_its_key(read, tmp_path, function, message):
    (tmp_path / "own_function.py").write_text(f"extra = {function}\n")
    with pytest.raises(UserError) as error:
        build(read("pipeline: {extra: own_function:extra}\n"), tmp_path)
    assert (error.value.where, message in error.value.message) == ("pipeline.extra", True)


def test_a_missing_parameter_is_reported_with_the_other_problems(read, tmp_path):
    edit(tmp_path / "own_nodes.py", "Parameter[int] = 3", "Parameter[int]")
    changed = NODE.replace("limit: 5", "limits: 5").replace("examples: Corpus", "exmples: Corpus")
    with pytest.raises(UserError) as error:
        check_own_code(read(f"pipeline:{changed}"))
    keys = {problem.key.removeprefix("pipeline.nodes.0.") for problem in error.value.problems}
    assert keys == {"parameters.limit", "inputs.examples", "parameters.limits", "inputs.exmples"}


def test_a_function_may_return_nodes_of_tfx_without_an_executor(read, tmp_path):
    def extra(nodes):
        resolver = Resolver(strategy_class=LatestArtifactStrategy, model=Channel(type=Model))
        return [Importer(source_uri=str(tmp_path), artifact_type=Schema), resolver]

    pipeline, nodes = build(read(f"pipeline:{NODE}"), tmp_path, extra)
    assert {"Importer", "Resolver"} <= set(nodes)
    order = local.node_ids(compiler.Compiler().compile(pipeline))
    assert {"Importer", "Resolver"} <= set(order)


def test_a_component_that_ends_the_process_is_an_error(read, tmp_path):
    (tmp_path / "own_class.py").write_text(
        "from own_gate import Gate\n"
        "class Exiting(Gate):\n"
        "    def __init__(self, count):\n"
        "        raise SystemExit(0)\n"
    )
    exiting = "  - {component: own_class:Exiting, inputs: {count: Profanity.count}}\n"
    with pytest.raises(UserError, match=r"tiny\.yaml:\d+: pipeline\.nodes\.1: SystemExit: 0"):
        check_own_code(read(f"pipeline:{NODE}{exiting}"))


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ("own_nodes:Profanity", "own_nodes:Profanty", "component", "Did you mean Profanity?"),
        ("own_nodes:Profanity", "own_nodes:WORDS", "component", "is no TFX component"),
        ("CorpusGen.examples", "CorpusGen.exampels", "inputs.examples", "Did you mean examples?"),
        ("CorpusGen.examples", "CorpusGen.findings", "inputs.examples", "Examples is expected"),
        ("{examples:", "{exmples:", "inputs.exmples", "Did you mean examples?"),
        ("{examples: CorpusGen.examples}", "{}", "inputs.examples", "is missing"),
        ("limit: 5", "limits: 5", "parameters.limits", "Did you mean limit?"),
        ("limit: 5", "limit: five", "parameters.limit", "a whole number or null is expected"),
        ("limit: 5", "limit: true", "parameters.limit", "true was given"),
        ("limit: 5", "limit: {}", "parameters.limit", "{} was given"),
    ],
)
def test_what_does_not_fit_is_an_error_of_its_key(read, tmp_path, old, new, key, message):
    assert old in NODE
    config = read(f"pipeline:{NODE.replace(old, new)}")
    with pytest.raises(UserError) as error:
        check_own_code(config)
    path = ".".join(filter(None, ("pipeline.nodes.0", key)))
    assert any(
        "tiny.yaml:" in line and f": {path}: " in line and message in line
        for line in error.value.message.splitlines()
    )
    with pytest.raises(UserError) as error:
        build(config, tmp_path)  # as a worker does, which knows no lines
    assert error.value.where.startswith("pipeline.nodes.0")
    assert config.locate(error.value.where).startswith(str(tmp_path / "tiny.yaml:"))


CLASS = """
pipeline:
  nodes:
  - component: tfx.components:StatisticsGen
    name: More
    after: Preprocess
    inputs: {examples: Preprocess.transformed_examples, schema: SchemaGen.schema}
"""


def test_a_class_of_an_installed_package(read, tmp_path):
    config = read(CLASS)
    check_own_code(config)
    _, nodes = build(config, tmp_path)
    assert nodes["More"].inputs["examples"].producer_component_id == "Preprocess"
    assert nodes["Preprocess"] in nodes["More"].upstream_nodes
    assert CODE not in nodes["More"].exec_properties


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("schema:", "scheme:", "inputs.scheme: unknown key. Did you mean schema?"),
        ("schema: SchemaGen.schema", "schema: Trainer.model", "inputs.schema: Schema is expected"),
        ("examples: Preprocess.transformed_examples, ", "", "0: "),
    ],
)
def test_arguments_of_a_class_are_checked(read, old, new, problem):
    assert old in CLASS
    with pytest.raises(UserError) as error:
        check_own_code(read(CLASS.replace(old, new)))
    assert problem in error.value.message


def _own(reference, more):
    return f"pipeline: {{nodes: [{{component: 'own_functions:{reference}', {more}}}]}}\n"


def test_whole_numbers_are_numbers(read, tmp_path):
    (tmp_path / "own_functions.py").write_text(FUNCTIONS)
    config = read(_own("Typed", "parameters: {share: 1, sizes: {a: [1, 2.5]}}"))
    check_own_code(config)
    properties = build(config, tmp_path)[1]["Typed"].exec_properties
    assert (properties["share"], properties["sizes"]) == (1.0, {"a": [1.0, 2.5]})
    assert isinstance(properties["share"], float)


@pytest.mark.parametrize(
    ("reference", "more", "key"),
    [
        ("Typed", "parameters: {share: a, sizes: {}}", "parameters.share"),
        ("Typed", "parameters: {share: .inf, sizes: {}}", "parameters.share"),
        ("Typed", "parameters: {share: 1, sizes: {a: [x]}}", "parameters.sizes.a.0"),
        ("Typed", "parameters: {share: 1, sizes: []}", "parameters.sizes"),
        ("Typed", "parameters: {share: 1}", "parameters.sizes"),
        ("Typed", "parameters: {share: 1, sizes: {}, name: 3}", "parameters.name"),
        ("Typed", "parameters: {share: 1, sizes: {}, model_config: 3}", "parameters.model_config"),
        ("Typed", "inputs: {a: CorpusGen.examples}, parameters: {share: 1, sizes: {}}", "inputs.a"),
        ("Reserved", "", "component"),
        ("Abstract", "", "component"),
        ("time", "", "component"),
        ("Bare", "", ""),
        ("Unnamed", "inputs: {examples: CorpusGen.examples}", ""),
        ("Misnamed", "name: More, inputs: {examples: CorpusGen.examples}", ""),
        ("Signed", "inputs: {examples: CorpusGen.examples}", ""),
        ("Counting", f"parameters: {{number: {10**30}}}", "parameters.number"),
        ("Counting", f"parameters: {{number: {2**63}}}", "parameters.number"),
        ("Counting", f"parameters: {{number: {-(2**63) - 1}}}", "parameters.number"),
        ("CountingClass", f"parameters: {{factor: {2**32}}}", ""),
        (
            "Silent",
            "inputs: {examples: CorpusGen.examples}, parameters: {rest: 1}",
            "parameters.rest",
        ),
    ],
)
def test_odd_components_and_values_are_errors_of_their_key(read, tmp_path, reference, more, key):
    (tmp_path / "own_functions.py").write_text(FUNCTIONS)
    with pytest.raises(UserError) as error:
        check_own_code(read(_own(reference, more)))
    (problem,) = error.value.problems
    assert problem.key == ".".join(filter(None, ("pipeline.nodes.0", key)))
    assert problem.text


@pytest.mark.parametrize("number", [-(2**63), 2**63 - 1])
def test_numbers_of_64_bits_are_parameters(read, tmp_path, number):
    (tmp_path / "own_functions.py").write_text(FUNCTIONS)
    config = read(_own("Counting", f"parameters: {{number: {number}}}"))
    check_own_code(config)
    assert build(config, tmp_path)[1]["Counting"].exec_properties["number"] == number


@pytest.mark.parametrize("node", ["Bare()", f"Counting(number={2**63})"])
def test_an_unusable_node_of_a_function_is_an_error_of_its_key(read, tmp_path, node):
    code = f"from own_functions import *\ndef extra(nodes):\n    return [{node}]\n"
    (tmp_path / "own_functions.py").write_text(FUNCTIONS)
    (tmp_path / "own_function.py").write_text(code)
    with pytest.raises(UserError) as error:
        build(read("pipeline: {extra: own_function:extra}\n"), tmp_path)
    assert error.value.where == "pipeline.extra"


def test_a_component_cannot_change_the_configuration(read, tmp_path):
    (tmp_path / "own_functions.py").write_text(FUNCTIONS)
    parameters = "inputs: {examples: CorpusGen.examples}, parameters: {limits: [1]}"
    silent = f"  - {{component: 'own_functions:Silent', {parameters}}}\n"
    config = read(f"pipeline:{NODE}{silent}")
    for _ in range(2):
        with pytest.raises(UserError) as error:
            check_own_code(config)
        (problem,) = error.value.problems
        assert (problem.key, problem.text) == ("pipeline.nodes.1", "ValueError: ")
    assert config.pipeline.nodes[1].parameters == {"limits": [1]}


def test_two_nodes_of_one_class_run_in_the_order_of_their_inputs(read, tmp_path):
    again = """
  - {component: own_gate:Gate, name: Late, inputs: {count: Second.count}, after: Second}
  - {component: own_nodes:Profanity, name: Second, inputs: {examples: CorpusGen.examples},
     before: Late}
"""
    config = read(f"pipeline:{NODE}{again}")
    check_own_code(config)
    pipeline, nodes = build(config, tmp_path)
    assert {"Profanity", "Second", "Late"} <= set(nodes)
    assert nodes["Late"].inputs["count"].producer_component_id == "Second"
    order = local.node_ids(compiler.Compiler().compile(pipeline))
    assert order.index("Second") < order.index("Late")


def test_nodes_of_a_function_differ_in_more_than_the_case(read, tmp_path):
    code = "from own_nodes import Profanity\n"
    code += "def extra(nodes):\n"
    code += "    del nodes['Trainer']\n"
    code += "    channel = nodes['CorpusGen'].outputs['examples']\n"
    code += "    return [Profanity(examples=channel).with_id('trainer')]\n"
    (tmp_path / "own_function.py").write_text(code)
    with pytest.raises(UserError) as error:
        build(read("pipeline: {extra: own_function:extra}\n"), tmp_path)
    assert error.value.where == "pipeline.extra"
