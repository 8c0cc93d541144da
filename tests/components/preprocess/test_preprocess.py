"""Preprocess from examples, schema and tokenizer on disk to ids and a graph."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import sentencepiece
import tensorflow as tf
import tensorflow_transform as tft
from tfx.components.util import tfxio_utils
from tfx.proto import transform_pb2
from tfx.types import channel_utils, standard_artifacts
from tfx.utils import io_utils, json_utils, proto_utils

from regard.components.common import row_files
from regard.components.common.artifact_files import examples_split
from regard.components.common.artifact_types import Tokenizer
from regard.components.common.node_code import preprocess_code
from regard.components.corpus_gen.example_writer import ExampleEncoder
from regard.components.data.images import Images
from regard.components.data_nodes import Preprocess
from regard.components.preprocess import transform_graph
from regard.components.preprocess.executor import PreprocessExecutor
from regard.components.preprocess.transform_graph import (
    _LoadedGraph,
    batch_rows,
    file_pairs,
)
from regard.components.settings.tokenizer import TokenizerConfig
from regard.components.tokenizer_trainer.sentencepiece_training import train_tokenizer
from regard.core.errors import UserError
from regard.core.features import Feature
from regard.core.kinds import POINTS
from regard.models import tasks
from regard.models.settings.base import Section

SPLITS = {
    "train": [(f"number {i} is here", f"hier ist die Zahl {i}") for i in range(50)],
    "eval": [("one two", "eins zwei"), ("", "nichts")],
    "test": [("unknown Ω", "unbekannt")],
}
SHAPE = "presence { min_fraction: 1 min_count: 1 } shape { dim { size: 1 } }"
SCHEMA = "".join(
    f'feature {{ name: "{name}" type: {kind} {SHAPE} }}\n'
    for name, kind in (("file", "BYTES"), ("line", "INT"), ("source", "BYTES"), ("target", "BYTES"))
)
BEAM = ["--runner=FnApiRunner", "--direct_running_mode=in_memory"]


def bytes_feature(text: str) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()]))


def write_examples(folder: Path) -> Any:
    for split, rows in SPLITS.items():
        path = folder / f"Split-{split}" / "data_tfrecord-00000-of-00001.gz"
        path.parent.mkdir(parents=True)
        with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
            for number, (source, target) in enumerate(rows, 1):
                feature = {
                    "source": bytes_feature(source),
                    "target": bytes_feature(target),
                    "file": bytes_feature("x.tsv"),
                    "line": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
                }
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString())
    return artifact(standard_artifacts.Examples, folder, split_names=json.dumps(list(SPLITS)))


def write_tokenizer(folder: Path) -> None:
    folder.mkdir()
    config = TokenizerConfig(vocab_size=40, vocab_limit="soft")
    features = {}
    for index, side in enumerate(("source", "target")):
        model = train_tokenizer((row[index].encode() for row in SPLITS["train"]), config)
        (folder / f"{side}.model").write_bytes(model.proto)
        features[side] = {"file": f"{side}.model", "tokens": len(model.tokens)}
    (folder / "tokenizer.json").write_text(json.dumps({"features": features}))


def artifact(kind: Any, folder: Path, split_names: str | None = None) -> Any:
    new = kind()
    new.uri = str(folder)
    if split_names is not None:
        new.split_names = split_names
    return new


@pytest.fixture(scope="module")
def transformed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("preprocess")
    examples = write_examples(root / "examples")
    write_tokenizer(root / "tokenizer")
    for split in SPLITS:  # as a killed attempt leaves it; readers ignore hidden files
        unfinished = (
            root / "transformed" / f"Split-{split}" / ".transformed_examples.gz.0123abcd.tmp"
        )
        unfinished.parent.mkdir(parents=True)
        unfinished.write_bytes(b"half")
    run(
        root,
        examples,
        SCHEMA,
        dict(component_of(tuple(SPLITS)).exec_properties),
        {"tokenizer": [artifact(Tokenizer, root / "tokenizer")]},
    )
    return root


def run(root: Path, examples: Any, schema: str, properties: Any, more: Any = None) -> Any:
    """Run Preprocess, and return the artifact of its transformed rows."""
    io_utils.write_bytes_file(str(root / "schema" / "schema.pbtxt"), schema.encode())
    context = PreprocessExecutor.Context(
        beam_pipeline_args=BEAM, tmp_dir=str(root / "tmp"), unique_id="1"
    )
    rows = artifact(standard_artifacts.Examples, root / "transformed")
    PreprocessExecutor(context).Do(
        {
            "examples": [examples],
            "schema": [artifact(standard_artifacts.Schema, root / "schema")],
            **(more or {}),
        },
        {
            "transform_graph": [artifact(standard_artifacts.TransformGraph, root / "graph")],
            "transformed_examples": [rows],
        },
        properties,
    )
    return rows


def component_of(splits: tuple[str, ...] = ("train", "eval")) -> Preprocess:
    return Preprocess(
        examples=channel_utils.as_channel([standard_artifacts.Examples()]),
        schema=channel_utils.as_channel([standard_artifacts.Schema()]),
        task="translation",
        tokenizer=channel_utils.as_channel([Tokenizer()]),
        splits=splits,
    )


def rows_of(root: Path, split: str) -> list[dict[str, list[int]]]:
    (file,) = (root / "transformed" / f"Split-{split}").glob("[!.]*")
    with pa.memory_map(str(file)) as source:
        table = pa.ipc.open_stream(source).read_all()
    spec = tft.TFTransformOutput(str(root / "graph")).transformed_feature_spec()
    assert set(table.column_names) == set(spec)
    return table.to_pylist()


@pytest.mark.parametrize("split", list(SPLITS))
def test_ids_are_those_of_the_tokenizer(transformed: Path, split: str) -> None:
    models = {
        side: sentencepiece.SentencePieceProcessor(
            model_proto=(transformed / "tokenizer" / f"{side}.model").read_bytes()
        )
        for side in ("source", "target")
    }
    expected = []
    for source, target in SPLITS[split]:
        ids = models["source"].encode(source), models["target"].encode(target)
        length = max(map(len, ids)) + 1 if all(ids) else 0
        expected.append((*ids, [len(ids[1])], [length]))
    names = ("source_ids", "target_ids", "target_lengths", row_files.LENGTHS)
    actual = [tuple(row[name] for name in names) for row in rows_of(transformed, split)]
    assert actual == expected


def test_no_padding_and_no_text(transformed: Path) -> None:
    spec = tft.TFTransformOutput(str(transformed / "graph")).transformed_feature_spec()
    assert set(spec) == {"source_ids", "target_ids", "target_lengths", row_files.LENGTHS}
    assert not any(0 in row["source_ids"] for row in rows_of(transformed, "train"))


def test_saved_graph_gives_the_same_ids(transformed: Path) -> None:
    output = tft.TFTransformOutput(str(transformed / "graph"))
    layer = output.transform_features_layer()
    source, target = SPLITS["eval"][0]
    raw = {"source": tf.constant([[source]]), "target": tf.constant([[target]])}
    raw |= {"file": tf.constant([["x"]]), "line": tf.constant([[1]], tf.int64)}
    result = layer(raw)
    for side, text in (("source", source), ("target", target)):
        proto = (transformed / "tokenizer" / f"{side}.model").read_bytes()
        model = sentencepiece.SentencePieceProcessor(model_proto=proto)
        assert result[f"{side}_ids"].to_list() == [model.encode(text)]


def test_tokenizer_is_stored_with_the_graph(transformed: Path) -> None:
    copied = transformed / "graph" / "tokenizer"
    assert {path.name for path in copied.iterdir()} == {
        "source.model",
        "target.model",
        "tokenizer.json",
    }
    original = transformed / "tokenizer" / "source.model"
    assert (copied / "source.model").read_bytes() == original.read_bytes()
    assert not list((transformed / "graph").glob(".*"))


def write_columns(folder: Path, splits: list[str], *rows: dict[str, str]) -> Any:
    """Examples without a file and a line, as CsvExampleGen writes them."""
    features = [{name: bytes_feature(text) for name, text in row.items()} for row in rows]
    examples = [tf.train.Example(features=tf.train.Features(feature=row)) for row in features]
    for split in splits:
        (folder / f"Split-{split}").mkdir(parents=True)
        path = folder / f"Split-{split}" / "data_tfrecord-00000-of-00001.gz"
        with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
            for example in examples:
                writer.write(example.SerializeToString())
    return artifact(standard_artifacts.Examples, folder, split_names=json.dumps(splits))


def schema_of(*columns: str, shape: str = SHAPE) -> str:
    return "".join(f'feature {{ name: "{name}" type: BYTES {shape} }}\n' for name in columns)


def tokenizer_of(transformed: Path) -> dict[str, Any]:
    return {"tokenizer": [artifact(Tokenizer, transformed / "tokenizer")]}


def test_any_examples_with_the_features_of_the_task(transformed: Path, tmp_path: Path) -> None:
    splits = ["train", "dev", "held-out"]
    source, target = SPLITS["train"][0]
    row = {"source": source, "target": target}
    examples = write_columns(tmp_path / "examples", splits, row)
    schema = schema_of("source", "target")
    properties = dict(component_of(()).exec_properties)
    rows = run(tmp_path, examples, schema, properties, tokenizer_of(transformed))
    for split in splits:
        assert rows_of(tmp_path, split) == rows_of(transformed, "train")[:1]
    assert json.loads(rows.split_names) == splits
    with pytest.raises(ValueError, match=r"regard\.components\.tf_dataset"):  # a reader of TFX
        tfxio_utils.get_split_tfxio([rows], "dev", ["test"])
    with pytest.raises(UserError, match=r"regard\.components\.tf_dataset"):
        examples_split(rows, "dev")


def test_rows_with_an_empty_cell_are_incomplete(transformed: Path, tmp_path: Path) -> None:
    """SchemaGen gives a column with an empty cell no shape."""
    source, target = SPLITS["train"][0]
    rows = [{"target": target}, {"source": source, "target": target}, {"source": source}]
    examples = write_columns(tmp_path / "examples", ["train"], *rows)
    schema = schema_of("source", "target", shape="presence { min_count: 1 }")
    properties = dict(component_of(()).exec_properties)
    run(tmp_path, examples, schema, properties, tokenizer_of(transformed))
    actual = rows_of(tmp_path, "train")
    assert actual[1] == rows_of(transformed, "train")[0]
    assert [actual[0][row_files.LENGTHS], actual[2][row_files.LENGTHS]] == [[0], []]


def test_a_schema_of_another_task_is_an_error(transformed: Path, tmp_path: Path) -> None:
    examples = write_columns(tmp_path / "examples", ["train"], {"english": "one", "target": "eins"})
    schema = schema_of("english", "target")
    properties = dict(component_of(()).exec_properties)
    with pytest.raises(UserError, match="no feature 'source'; it has english, target") as caught:
        run(tmp_path, examples, schema, properties, tokenizer_of(transformed))
    assert "translation needs source, target" in caught.value.remedy


def test_wiring() -> None:
    component = component_of()
    assert component.id == "Preprocess"
    assert set(component.inputs) == {"examples", "schema", "tokenizer"}
    assert set(component.outputs) == {"transform_graph", "transformed_examples"}
    properties = component.exec_properties
    assert json_utils.loads(properties["custom_config"]) == {
        "task": "translation",
        "settings": {
            "copies": False,
            "tag_feature": None,
            "protect": None,
            "guided_alignment": None,
        },
    }
    assert properties["code"] == preprocess_code("translation") != preprocess_code("pointer")
    assert properties["disable_statistics"] == 1
    config = transform_pb2.SplitsConfig()
    proto_utils.json_to_proto(properties["splits_config"], config)
    assert list(config.analyze) == ["train"]
    assert list(config.transform) == ["train", "eval"]


class ScalingConfig(Section):
    largest: float = 1.0


class Scaling:
    """A task without text, which scales points by the largest number of the training split."""

    description = SimpleNamespace(
        preprocessing_section=ScalingConfig,
        features=[Feature("points", POINTS)],
        trained_features=("points",),
    )

    def transform(self, inputs: Any, tokenizers: Any, settings: ScalingConfig) -> dict[str, Any]:
        assert tokenizers == {}
        points = inputs["points"]
        scaled = points.values * (settings.largest / tft.max(points))
        return {"points": tf.SparseTensor(points.indices, scaled, points.dense_shape)}

    def lengths(self, features: Any) -> tf.Tensor:
        return tf.RaggedTensor.from_sparse(features["points"]).row_lengths()[:, None]


def test_task_without_text_that_analyzes_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "get_preprocessing", {"scaling": Scaling()}.__getitem__)
    rows = {"train": [[1.0, 2.0], [3.0, 4.0, 5.0, 8.0]], "eval": [[0.5, 1.0]], "test": [[7.0, 8.0]]}
    encoded = ExampleEncoder([Feature("points", POINTS)], "x.tsv", Images(""))
    for split, points in rows.items():
        path = tmp_path / "examples" / f"Split-{split}" / "data_tfrecord-00000-of-00001.gz"
        path.parent.mkdir(parents=True)
        with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
            for line, values in enumerate(points, 1):
                writer.write(encoded(line, [values]))
    names = json.dumps(list(rows))
    examples = artifact(standard_artifacts.Examples, tmp_path / "examples", split_names=names)
    settings = {"task": "scaling", "settings": {"largest": 2.0}}
    properties = dict(component_of(tuple(SPLITS)).exec_properties)
    properties["custom_config"] = json_utils.dumps(settings)
    schema = 'feature { name: "points" type: FLOAT presence { min_fraction: 1 min_count: 1 } }'
    run(tmp_path, examples, schema, properties)
    actual = {split: [row["points"] for row in rows_of(tmp_path, split)] for split in rows}
    assert actual == {
        "train": [[0.25, 0.5], [0.75, 1.0, 1.25, 2.0]],
        "eval": [[0.125, 0.25]],
        "test": [[1.75, 2.0]],
    }
    lengths = [row[row_files.LENGTHS] for row in rows_of(tmp_path, "train")]
    assert lengths == [[2], [4]]
    assert not (tmp_path / "graph" / "tokenizer").exists()


def test_unfinished_files_are_removed(transformed: Path) -> None:
    for split in SPLITS:
        (file,) = (transformed / "transformed" / f"Split-{split}").glob("[!.]*")
        assert file.name == "transformed_examples-00000-of-00001.arrow"


def test_two_attempts_at_one_file(
    transformed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pair,) = file_pairs(
        [str(transformed / "examples" / "Split-train" / "data_tfrecord-00000-of-00001.gz")],
        str(tmp_path),
    )
    # TFX reloads the module, so its present class is the one in use.
    loaded_graph = transform_graph._LoadedGraph
    transform = transform_graph.FileTransformer(str(transformed / "graph"))
    records, attempts = loaded_graph.transform_file, []

    def transform_twice(self: _LoadedGraph, path: str) -> Iterator[pa.RecordBatch]:
        attempts.append(path)
        for batch in records(self, path):
            yield batch.slice(0, 20)
            if len(attempts) == 1:
                transform(*pair)
            yield batch.slice(20)

    monkeypatch.setattr(loaded_graph, "transform_file", transform_twice)
    transform(*pair)
    assert len(attempts) == 2
    assert [file.name for file in tmp_path.iterdir()] == [Path(pair[1]).name]
    (columns,) = tmp_path.iterdir()
    with pa.memory_map(str(columns)) as source:
        assert pa.ipc.open_stream(source).read_all().to_pylist() == rows_of(transformed, "train")


@pytest.mark.parametrize(
    ("sizes", "rows"),
    [([10], 1024), ([2**20, 10], 4), ([10, 2**20], 4), ([2**23], 1), ([0], 1024), ([], 1024)],
)
def test_batches_of_large_rows(tmp_path: Path, sizes: list[int], rows: int) -> None:
    path = str(tmp_path / "rows.gz")
    with tf.io.TFRecordWriter(path, "GZIP") as writer:
        for size in sizes:
            writer.write(bytes(size))
    assert batch_rows(tf.data.TFRecordDataset(path, compression_type="GZIP")) == rows
