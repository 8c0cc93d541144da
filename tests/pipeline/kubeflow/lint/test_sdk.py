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


@dsl.container_component
def take(count: int):
    return dsl.ContainerSpec(image="i:1", command=["take"], args=[count])


@dsl.container_component
def gather(counts: list, data: dsl.Input[list[dsl.Dataset]]):
    return dsl.ContainerSpec(image="i:1", command=["gather"], args=[counts])


@dsl.container_component
def maybe(size: int = 1, rate: float = 0.1, given: dict = {}, note: str = None):  # noqa: B006, RUF013
    optional = dsl.IfPresentPlaceholder(input_name="note", then=["--note", note])
    return dsl.ContainerSpec(image="i:1", command=["maybe"], args=[size, rate, given, optional])


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


@dsl.pipeline
def collected(sizes: list = [1, 2]):  # noqa: B006
    with dsl.ParallelFor(sizes) as size:
        made = make(size=size)
    gather(counts=dsl.Collected(made.outputs["count"]), data=dsl.Collected(made.outputs["data"]))


@dsl.pipeline
def one_of(size: int = 3):
    with dsl.If(size > 1):
        some = make(size=size)
    with dsl.Else():
        other = make(size=1)
    tell(note="x")
    take(count=dsl.OneOf(some.outputs["count"], other.outputs["count"]))


@dsl.pipeline
def optional(size: int = 1, note: str = "", rate: float = 0.5, given: dict = {}):  # noqa: B006
    maybe(size=size, rate=rate, given=given, note=note)
    maybe()


@dsl.pipeline
def inner(size: int) -> int:
    return make(size=size).outputs["count"]


@dsl.pipeline
def outer(size: int = 2):
    take(count=inner(size=size).output)


EVERY = [plain, loops, nested, collected, one_of, optional, outer]


@pytest.mark.parametrize("pipeline", EVERY)
def test_no_fault(pipeline, tmp_path):
    path = tmp_path / "pipeline.yaml"
    compiler.Compiler().compile(pipeline, str(path))
    assert lint(path.read_text()) == []
