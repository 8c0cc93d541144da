"""References that lead nowhere, values of another type, and keys that nothing reads."""

import copy

import pytest
import yaml

from pipeline.kubeflow.lint import lint

PIPELINE = """
pipelineInfo: {name: small}
schemaVersion: 2.1.0
root:
  inputDefinitions:
    parameters: {size: {parameterType: NUMBER_INTEGER}, note: {parameterType: STRING}}
  dag:
    tasks:
      make:
        componentRef: {name: make}
        inputs: {parameters: {size: {componentInputParameter: size}}}
      loop:
        componentRef: {name: loop}
        dependentTasks: [make]
        parameterIterator: {itemInput: item, items: {inputParameter: sizes}}
        triggerPolicy: {condition: "inputs.parameter_values['note'] == 'x'"}
        inputs:
          parameters:
            sizes: {runtimeValue: {constant: [1, 2]}}
            note: {componentInputParameter: note}
          artifacts:
            data: {taskOutputArtifact: {producerTask: make, outputArtifactKey: data}}
components:
  make:
    executorLabel: make
    inputDefinitions: {parameters: {size: {parameterType: NUMBER_INTEGER}}}
    outputDefinitions:
      artifacts: {data: {artifactType: {schemaTitle: system.Dataset, schemaVersion: 0.0.1}}}
  loop:
    inputDefinitions:
      parameters:
        item: {parameterType: STRUCT}
        sizes: {parameterType: LIST}
        note: {parameterType: STRING}
      artifacts: {data: {artifactType: {schemaTitle: system.Dataset, schemaVersion: 0.0.1}}}
    outputDefinitions:
      artifacts: {all: {artifactType: {schemaTitle: system.Dataset, schemaVersion: 0.0.1}}}
      parameters: {count: {parameterType: NUMBER_INTEGER}}
    dag:
      outputs:
        artifacts: {all: {artifactSelectors: [{producerSubtask: use, outputArtifactKey: out}]}}
        parameters:
          count: {valueFromParameter: {producerSubtask: use, outputParameterKey: count}}
      tasks:
        use:
          componentRef: {name: use}
          inputs:
            parameters: {size: {componentInputParameter: item}}
            artifacts: {data: {componentInputArtifact: data}}
  use:
    executorLabel: use
    inputDefinitions:
      parameters: {size: {parameterType: NUMBER_DOUBLE}}
      artifacts: {data: {artifactType: {schemaTitle: system.Dataset, schemaVersion: 0.0.1}}}
    outputDefinitions:
      artifacts: {out: {artifactType: {schemaTitle: system.Dataset, schemaVersion: 0.0.1}}}
      parameters: {count: {parameterType: NUMBER_INTEGER}}
deploymentSpec:
  "@type": type.googleapis.com/ml_pipelines.PipelineDeploymentConfig
  executors:
    make: {container: {image: "i:1", command: [make, "{{$.inputs.parameters['size']}}"]}}
    use:
      container:
        image: i:1
        command: [use, "{{$.inputs.artifacts['data'].path}}", "{{$.outputs.artifacts['out'].uri}}"]
        resources:
          memoryLimit: 5.0
          accelerator: {type: nvidia.com/gpu, count: "1"}
---
platforms:
  kubernetes:
    deploymentSpec:
      executors:
        make: {pvcMount: [{mountPath: /data, constant: data}], image_pull_policy: Always}
"""


@pytest.fixture
def documents():
    return list(yaml.safe_load_all(PIPELINE))


def found_in(documents):
    text = yaml.safe_dump_all(documents)
    return {finding.rule: finding for finding in lint(text)}


def test_nothing_is_wrong(documents):
    assert found_in(documents) == {}


def at(documents, *path):
    value = documents[0]
    for key in path:
        value = value[key]
    return value


def tasks(documents, component="root"):
    found = documents[0]["root"] if component == "root" else documents[0]["components"][component]
    return found["dag"]["tasks"]


def container(documents):
    return at(documents, "deploymentSpec", "executors", "use", "container")


def nodes(documents):
    return documents[1]["platforms"]["kubernetes"]["deploymentSpec"]["executors"]


def give(documents, name, value):
    tasks(documents)["make"]["inputs"]["parameters"][name] = value


def second_make(documents):
    tasks(documents)["other"] = {**tasks(documents)["make"], "dependentTasks": ["loop"]}
    tasks(documents)["make"]["dependentTasks"] = ["other"]


CHANGES = {
    "an artifact that is not around": (
        "input",
        lambda d: tasks(d, "loop")["use"]["inputs"]["artifacts"].update(
            data={"componentInputArtifact": "nope"}
        ),
        "no artifact 'nope' around it",
    ),
    "a loop over nothing": (
        "iterator",
        lambda d: tasks(d)["loop"]["parameterIterator"].update(items={"inputParameter": "nope"}),
        "loops over 'nope'",
    ),
    "an artifact of no task": (
        "dependency",
        lambda d: at(d, "components", "loop", "dag", "outputs", "artifacts", "all").update(
            artifactSelectors=[{"producerSubtask": "nope", "outputArtifactKey": "out"}]
        ),
        "no task 'nope'",
    ),
    "a parameter of no output": (
        "input",
        lambda d: at(d, "components", "loop", "dag", "outputs", "parameters").update(
            count={"valueFromParameter": {"producerSubtask": "use", "outputParameterKey": "nope"}}
        ),
        "no output 'nope'",
    ),
    "one of several": (
        "dependency",
        lambda d: at(d, "components", "loop", "dag", "outputs", "parameters").update(
            count={"valueFromOneof": {"parameterSelectors": [{"producerSubtask": "nope"}]}}
        ),
        "no task 'nope'",
    ),
    "a condition on nothing": (
        "condition",
        lambda d: tasks(d)["loop"]["triggerPolicy"].update(
            condition="int(inputs.parameter_values['nope']) > 1"
        ),
        "depends on 'nope'",
    ),
    "a place in a command": (
        "placeholder",
        lambda d: container(d).update(args=["{{$.inputs.artifacts['nope'].path}}"]),
        "no 'nope'",
    ),
    "an output's place in a command": (
        "placeholder",
        lambda d: container(d).update(args=["{{$.outputs.parameters['size'].output_file}}"]),
        "no 'size'",
    ),
    "a constant of another type": (
        "type",
        lambda d: give(d, "size", {"runtimeValue": {"constant": "abc"}}),
        "a whole number is taken, and 'abc' is given",
    ),
    "a parameter of another type": (
        "type",
        lambda d: give(d, "size", {"componentInputParameter": "note"}),
        "a whole number is taken, and a text is given",
    ),
    "an input without a type": (
        "parameter-type",
        lambda d: at(d, "components", "make", "inputDefinitions", "parameters").update(size={}),
        "the input size has no type",
    ),
    "a task that waits for itself": (
        "circle",
        lambda d: tasks(d)["make"].update(dependentTasks=["make"]),
        "the task make waits for itself",
    ),
    "tasks that wait for each other": (
        "circle",
        second_make,
        "wait for each other: loop, make, other",
    ),
    "an artifact that a run cannot give": (
        "root-artifact",
        lambda d: at(d, "root", "inputDefinitions").update(artifacts={"model": {}}),
        "takes the artifact model",
    ),
    "two platforms": ("several", lambda d: d.append(copy.deepcopy(d[1])), "a second platform"),
    "resource for resources": (
        "unknown",
        lambda d: container(d).update(resource={"cpuLimit": 1}),
        "nothing knows 'resource'",
    ),
    "a limit of another name": (
        "unknown",
        lambda d: container(d)["resources"].update(cpuLimits=1),
        "nothing knows 'cpuLimits'",
    ),
    "a variable without its name": (
        "unknown",
        lambda d: container(d).update(env=[{"name": "A", "value": "1"}, {"nam": "B"}]),
        "nothing knows 'nam'",
    ),
    "a setting of a node": (
        "unknown",
        lambda d: nodes(d)["make"].update(pvcMounts=[]),
        "nothing of a node is called 'pvcMounts'",
    ),
    "an accelerator without its kind": (
        "accelerator",
        lambda d: container(d)["resources"].update(accelerator={"count": "1"}),
        "go together",
    ),
    "an accelerator without its count": (
        "accelerator",
        lambda d: container(d)["resources"].update(accelerator={"type": "nvidia.com/gpu"}),
        "go together",
    ),
    "less than nothing": (
        "resources",
        lambda d: container(d)["resources"].update(memoryLimit=-5.0),
        "-5.0 is less than nothing",
    ),
    "less than nothing, as a quantity": (
        "resources",
        lambda d: container(d)["resources"].update(resourceMemoryLimit="-5Gi"),
        "-5Gi is less than nothing",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_wrong_is_found(documents, name):
    rule, change, told = CHANGES[name]
    change(documents)
    found = found_in(documents)
    assert set(found) == {rule}
    assert told in found[rule].message
    assert found[rule].line > 1
    assert found[rule].remedy


def test_a_text_takes_anything(documents):
    at(documents, "components", "make", "inputDefinitions", "parameters")["size"] = {
        "parameterType": "STRING"
    }
    for value in ({"runtimeValue": {"constant": 5}}, {"componentInputParameter": "size"}):
        give(documents, "size", value)
        assert found_in(documents) == {}
