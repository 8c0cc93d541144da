"""The Kubeflow SDK's own pipelines run, so they have no fault."""

import pytest
from kfp import compiler, dsl

from pipeline.kubeflow.lint import lint


@dsl.container_component
def make(size: int, data: dsl.Output[dsl.Dataset], count: dsl.OutputPath(int)):
    return dsl.ContainerSpec(image="i:1", command=["make"], args=[size, data.path, count])


@dsl.container_component
def use(data: dsl.Input[dsl.Dataset], note: str = "none"):
    return dsl.ContainerSpec(image="i:1", command=["use"], args=[data.path, note])


@dsl.container_component
def tell(note: str):
    return dsl.ContainerSpec(image="i:1", command=["tell"], args=[note])


@dsl.pipeline
def plain(size: int, note: str = "hello"):
    made = make(size=size)
    use(data=made.outputs["data"], note=note).set_cpu_limit("2").set_memory_limit("4G")
    imported = dsl.importer("gs://bucket/data", artifact_class=dsl.Dataset)
    use(data=imported.output)


@dsl.pipeline
def loops(size: int = 3):
    made = make(size=size)
    with dsl.If(made.outputs["count"] > 1), dsl.ParallelFor([1, 2]) as item:
        inner = make(size=item).set_accelerator_type("nvidia.com/gpu").set_accelerator_limit(1)
        use(data=inner.outputs["data"])


@dsl.pipeline
def nested(size: int = 3):
    with dsl.ExitHandler(tell(note="done")):
        plain(size=size)


@pytest.mark.parametrize("pipeline", [plain, loops, nested])
def test_no_fault(pipeline, tmp_path):
    path = tmp_path / "pipeline.yaml"
    compiler.Compiler().compile(pipeline, str(path))
    assert lint(path.read_text()) == []
