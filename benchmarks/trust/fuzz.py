"""Coverage-guided fuzzing of the parsers with atheris, a process for each target.

    pip install atheris
    python -m benchmarks.trust fuzz --seconds 600

A target feeds bytes to one parser. Errors that the parser documents are expected; any other
exception, and a run over 10 s or 2 GiB, is a finding: its input remains in the folder.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

MAX_ELEMENTS = 1 << 20
Target = Callable[[bytes], None]
SEEDS: dict[str, list[bytes]] = {
    "grpc": [bytes(range(start, start + 64)) for start in (0, 64, 128, 192)],
    "json": [b'{"instances": [{"a": "x", "b": [1.5]}]}', b'{"inputs": {"a": {"b64": "YQ=="}}}'],
    "yaml": [
        b"name: a\ndata: {root: ${A:-b}, train: c}\nx: &a [1, 2]\ny: {<<: *a, z: !!bool on}\n"
    ],
    "rows": [b'{"text": ["a"], "summary": null}\n', b"a\tb\n[[0, 1]]\t0 1\n"],
    "images": [],
}
NUMBER_FIELDS = ("float_val", "double_val", "int_val", "int64_val", "half_val", "bool_val")
OTHER_FIELDS = ("uint32_val", "uint64_val", "scomplex_val", "dcomplex_val")
KINDS = ("string", "float32", "int64", "uint8", "bool", "float16", "complex64")


def grpc_target(folder: Path) -> Target:
    """Parse a message with tensors of all types, and check and convert them.

    The bytes decide on types, shapes and fields, because the parser of Protocol Buffers is not
    written in Python and gives no coverage.
    """
    import atheris
    from tensorflow_serving.apis import predict_pb2

    from regard.serving.server.errors import ServingError
    from regard.serving.server.grpc_api import _parse, _read_info, _to_arrays

    def fill(proto: Any, data: Any) -> None:
        proto.dtype = data.ConsumeIntInRange(0, 40)
        for _ in range(data.ConsumeIntInRange(0, 4)):
            proto.tensor_shape.dim.add(size=data.PickValueInList([-1, 0, 1, 2, 3, 65536]))
        proto.tensor_shape.unknown_rank = data.ConsumeProbability() < 0.02
        for _ in range(data.ConsumeIntInRange(0, 2)):
            if data.ConsumeBool():
                proto.tensor_content += data.ConsumeBytes(data.ConsumeIntInRange(0, 16))
            proto.string_val.extend([data.ConsumeBytes(4)] * data.ConsumeIntInRange(0, 3))
            field = data.PickValueInList([*NUMBER_FIELDS, *OTHER_FIELDS])
            value = data.PickValueInList([0, 1, 255, 2**31 - 1])
            getattr(proto, field).extend([value] * data.ConsumeIntInRange(0, 5))

    def run(content: bytes) -> None:
        data, request = atheris.FuzzedDataProvider(content), predict_pb2.PredictRequest()
        for _ in range(data.ConsumeIntInRange(0, 2)):
            fill(request.inputs[data.ConsumeUnicodeNoSurrogates(2)], data)
        message = request.SerializeToString()
        with contextlib.suppress(ServingError):
            request = _parse(predict_pb2.PredictRequest, message + data.ConsumeBytes(8))
            shapes = [_read_info(name, tensor).shape for name, tensor in request.inputs.items()]
            if sum(map(math.prod, shapes)) <= MAX_ELEMENTS:  # as the server, with its own limit
                _to_arrays(request)

    return run


def json_target(folder: Path) -> Target:
    """Parse the body of a Predict request: the bytes as they are, or values that they decide on."""
    import atheris
    import orjson

    from regard.serving.server.errors import ServingError
    from regard.serving.server.rest_json import parse_predict

    def value(data: Any, depth: int = 0) -> Any:
        choice = data.ConsumeIntInRange(0, 9)
        if choice < 4 and depth < 8:
            return [value(data, depth + 1) for _ in range(choice)]
        if choice == 4 and depth < 8:
            keys = ["a", "b", "b64", "instances", "inputs", "signature_name"]
            count = data.ConsumeIntInRange(0, 3)
            return {data.PickValueInList(keys): value(data, depth + 1) for _ in range(count)}
        scalars = [None, True, 0, -1, 255, 256, 2**63 - 1, 2**64 - 1, 1.5, 1e308, -0.0, "YQ==", ""]
        return data.ConsumeUnicodeNoSurrogates(4) if choice == 5 else data.PickValueInList(scalars)

    def run(content: bytes) -> None:
        body, types = content, {"a": "string", "b": "float32"}
        if content[:1] != b"{":
            data = atheris.FuzzedDataProvider(content)
            names = ["a", "b"][: data.ConsumeIntInRange(1, 2)]
            types = {name: data.PickValueInList(list(KINDS)) for name in names}
            rows = [{name: value(data) for name in names} for _ in range(data.ConsumeBool() + 1)]
            document = value(data) if data.ConsumeProbability() < 0.1 else {"instances": rows}
            if data.ConsumeBool():
                document = {"inputs": rows[0] if data.ConsumeBool() else value(data)}
            body = orjson.dumps(document) + data.ConsumeBytes(1)
        with contextlib.suppress(ServingError):
            parse_predict(body, lambda name: types)

    return run


def yaml_target(folder: Path) -> Target:
    """Load a configuration."""
    from regard.core.errors import UserError
    from regard.pipeline.config import load

    path = folder / "input.yaml"

    def run(content: bytes) -> None:
        path.write_bytes(content)
        with contextlib.suppress(UserError):
            load(path)

    return run


def rows_target(folder: Path) -> Target:
    """Read TSV or JSON lines; the first byte selects the format and the features."""
    from regard.components.data.images import Images
    from regard.components.data.read_problems import ReadProblems
    from regard.components.data.row_reader import read_rows
    from regard.components.data.sources import Corpus, FileGroup
    from regard.components.data.unreadable_file import UnreadableFile
    from regard.components.settings.data import DataConfig
    from regard.models import tasks

    config = DataConfig.model_validate({"root": str(folder), "train": "input"})
    images = Images.of(config)
    corpora = [Corpus(config, tuple(tasks.describe(name).features)) for name in sorted(tasks.TASKS)]

    def run(content: bytes) -> None:
        choice, path = content[0] if content else 0, folder / "input"
        path.write_bytes(content[1:])
        kind = "jsonl" if choice % 2 else "tsv"
        group = FileGroup("train", kind, (str(path),))
        corpus = corpora[choice // 2 % len(corpora)]
        with contextlib.suppress(UnreadableFile):
            list(read_rows(group, corpus, ReadProblems(), images))

    return run


def images_target(folder: Path) -> Target:
    """Decode an image as the served graph does."""
    import tensorflow as tf

    from regard.models.tasks.image_decoding import decode_images

    session = tf.compat.v1.Session(graph=tf.Graph())  # a function keeps memory of each failure
    with session.graph.as_default():
        images = tf.compat.v1.placeholder(tf.string, [None])
        decode = session.make_callable(decode_images(images, 16, 16), [images])

    def run(content: bytes) -> None:
        with contextlib.suppress(tf.errors.InvalidArgumentError):
            decode([content])

    return run


TARGETS: dict[str, Callable[[Path], Target]] = {
    "grpc": grpc_target,
    "json": json_target,
    "yaml": yaml_target,
    "rows": rows_target,
    "images": images_target,
}


def write_seeds(name: str, folder: Path) -> None:
    """Write the first inputs of a target."""
    seeds = list(SEEDS[name])
    if name == "images":
        import io

        from PIL import Image

        for kind in ("png", "jpeg", "bmp"):
            stream = io.BytesIO()
            Image.effect_noise((9, 7), 50).convert("RGB").save(stream, kind)
            seeds.append(stream.getvalue())
    for number, seed in enumerate(seeds):
        (folder / f"seed{number}").write_bytes(seed)


def fuzz(name: str, folder: Path, seconds: int) -> None:
    """Fuzz one target in this process, which libFuzzer ends."""
    import atheris

    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    write_seeds(name, corpus)
    modules = ["regard", "ruamel", "tensorflow.python.framework.tensor_util"]
    with atheris.instrument_imports(include=modules):
        target = TARGETS[name](folder)
    options = [f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048", "-max_len=4096"]
    prefix = f"-artifact_prefix={folder}/finding-"
    atheris.Setup([sys.argv[0], str(corpus), *options, prefix, "-print_final_stats=1"], target)
    atheris.Fuzz()


def main(arguments: list[str]) -> int:
    """Fuzz all targets, or one; print the executions and findings; return 1 if there are some."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=600, help="time for each target")
    parser.add_argument("--folder", type=Path, default=Path("fuzz"), help="corpora and findings")
    parser.add_argument("--target", choices=sorted(TARGETS), help="only this one, in this process")
    options = parser.parse_args(arguments)
    if options.target:
        fuzz(options.target, options.folder / options.target, options.seconds)
        return 0
    count = 0
    for name in TARGETS:
        command = [sys.executable, "-c", "import sys; from benchmarks.trust.fuzz import main; "]
        command[-1] += "main(sys.argv[1:])"
        command += ["--target", name, "--folder", str(options.folder)]
        command += ["--seconds", str(options.seconds)]
        result = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace")
        lines = result.stderr.splitlines()
        runs = [line.split()[-1] for line in lines if "number_of_executed_units" in line]
        findings = sorted((options.folder / name).glob("finding-*"))
        count += len(findings)
        print(f"{name}: {runs[-1] if runs else '?'} executions, {len(findings)} findings")
        if result.returncode:
            print("\n".join(lines[-30:]))
    return int(count > 0)
