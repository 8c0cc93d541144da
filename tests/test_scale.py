"""The examples in docs/how-to/scale.md, flink.md and docs/flink.yaml are valid."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
SECTIONS = re.findall(
    r"^```yaml\n(beam:.*?)^```",
    "".join((ROOT / f"docs/how-to/{name}.md").read_text("utf-8") for name in ("scale", "flink")),
    re.M | re.S,
)
POOL = 50000  # the port of the image with --worker_pool


def test_no_section_is_left_out():
    assert len(SECTIONS) == 5
    sections = [yaml.safe_load(section)["beam"] for section in SECTIONS]
    runners = {section["runner"] for section in sections}
    assert runners == {"processes", "portable", "flink", "spark", "dataflow"}
    external = [x["options"] for x in sections if x["runner"] in ("flink", "spark")]
    assert {options["environment_config"] for options in external} == {f"localhost:{POOL}"}


def test_a_pool_stands_beside_each_task_manager_and_sees_the_files():
    flink, jobs, service = yaml.safe_load_all((ROOT / "docs/flink.yaml").read_text("utf-8"))
    pod = flink["spec"]["taskManager"]["podTemplate"]["spec"]
    main, pool = pod["containers"]
    assert main["name"] == "flink-main-container"  # as Flink's operator knows it
    assert pool["args"] == ["--worker_pool"]
    assert pool["ports"][0]["containerPort"] == POOL
    job_pod = jobs["spec"]["template"]["spec"]
    (container,) = job_pod["containers"]
    for each in (main, pool, container):
        assert each["volumeMounts"] == [{"name": "regard", "mountPath": "/regard"}]
    assert pod["volumes"] == job_pod["volumes"]
    beam = re.search(r"^ARG BEAM=(.*)$", (ROOT / "Dockerfile").read_text("utf-8"), re.M)[1]
    version = flink["spec"]["image"].partition(":")[2]
    assert container["image"] == f"apache/beam_flink{version}_job_server:{beam}"
    assert flink["spec"]["flinkVersion"] == f"v{version.replace('.', '_')}"
    job_port = service["spec"]["ports"][0]["port"]
    assert f"job_endpoint: {service['metadata']['name']}:{job_port}" in SECTIONS[1]
