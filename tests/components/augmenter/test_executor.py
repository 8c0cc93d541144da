import functools
import gzip
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import standard_artifacts

from regard.components.augmenter import executor, model_pass
from regard.components.augmenter.executor import AugmenterExecutor
from regard.components.augmenter.model_pass import ModelPass
from regard.components.common.artifact_files import split_shards
from regard.components.common.artifact_types import Findings
from regard.components.data.example_rows import read_rows
from regard.components.predictor import batch_results
from regard.components.settings.trainer import StartingModel
from regard.core import events
from regard.core.errors import UserError
from regard.core.features import Feature
from regard.core.kinds import TEXT
from regard.serving.saved_model import InputLengthError
from tests import fake_models
from tests.fake_models import FEATURES, MOST_LETTERS, Reverser, artifact

BEAM = ["--runner=FnApiRunner", "--sdk_container_image=unused", "--direct_running_mode=in_memory"]
TRAIN = [["abc", "", "a longer one"], ["xy", "été", "b" * (MOST_LETTERS + 1), "z"]]
DISTILLATION = {"teacher": "deep@1"}


class CountingReverser(Reverser):
    """Reports in its default signature how many letters it has cut off."""

    def contract(self):
        result = super().contract()
        result["signatures"]["serving_default"]["outputs"]["source_cut"] = []
        return result

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="source")])
    def translate(self, source):
        return {name: self.answer(source)[name] for name in ("translation", "score", "source_cut")}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return fake_models.save(CountingReverser(), tmp_path_factory.mktemp("model"))


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setenv(events.VARIABLE, str(tmp_path / "events.jsonl"))
    return lambda kind: [e for e, _ in events.read(tmp_path / "events.jsonl") if e["kind"] == kind]


def row(text, line, target=None):
    return {"source": text, "target": text + "!" if target is None else target, "line": line}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Examples with two files of the train split, and one of each other split."""
    root = tmp_path_factory.mktemp("source")
    folder = root / "examples"
    splits = {"train": TRAIN, "eval": [["e", "abc"]], "test": [["t"]]}
    for name, shards in splits.items():
        rows = [[row(text, i) for i, text in enumerate(texts, 1)] for texts in shards]
        created = fake_models.examples(root / name, rows)
        folder.mkdir(exist_ok=True)
        (root / name / "Split-test").rename(folder / f"Split-{name}")
    created.uri, created.span = str(folder), 3
    return created


@pytest.fixture(scope="module", autouse=True)
def parts_of_two_rows():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_pass, "PART_ROWS", 2)
        yield


def augment(
    root,
    model,
    source,
    name="out",
    monolingual=(),
    encoding=None,
    features=tuple(FEATURES),
    **sections,
):
    """Run the executor, and return the folder of its examples; the parts are in ``parts``."""
    out = artifact(standard_artifacts.Examples, root / name / "examples")
    findings = artifact(Findings, root / name / "findings")
    keys = [f"{section}.{key}" for section, options in sections.items() for key in options]
    settings = {
        "augmentation": sections,
        "task": "translation",
        "features": [feature.to_json() for feature in features],
        "batch_size": 2,
        "root": str(root),
        "monolingual": list(monolingual),
        "encoding": encoding,
    }
    starting_model = {"model": "deep@1", "path": str(model), "digest": "d1"}
    context = BaseBeamExecutor.Context(beam_pipeline_args=BEAM, tmp_dir=str(root / "tmp"))
    AugmenterExecutor(context).Do(
        {"examples": [source]},
        {"augmented_examples": [out], "findings": [findings]},
        {
            "settings": json.dumps(settings),
            "models": json.dumps(dict.fromkeys(keys, starting_model)),
            "registry": "",
            "folder": str(root / "parts"),
        },
    )
    assert (out.span, out.split_names) == (3, source.split_names)
    return Path(out.uri)


@pytest.fixture
def run(tmp_path, model, source):
    return functools.partial(augment, tmp_path, model, source)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, model, source):
    """The folder of a finished distillation, with its parts."""
    root = tmp_path_factory.mktemp("finished")
    augment(root, model, source, distillation=DISTILLATION)
    return root


@pytest.fixture
def parts(finished, tmp_path):
    """A copy of the parts of the finished distillation for another run."""
    shutil.copytree(finished / "parts", tmp_path / "parts")
    (folder,) = (tmp_path / "parts").iterdir()
    return folder


def pairs(folder, split="train"):
    rows = []
    for path in split_shards(f"{folder}/Split-{split}"):
        rows += read_rows(path, FEATURES)
    return [tuple(texts[0] for texts in example.values) for example in rows]


def original_pairs():
    return [(text, text + "!") for texts in TRAIN for text in texts]


def distilled(pair):
    """The row of the teacher; it gives no output to a blank source, and truncates a long one."""
    source, target = pair
    is_usable = 0 < len(source) <= MOST_LETTERS
    return source, source.upper()[::-1] if is_usable else target


def contents(folder, split):
    return {path.name: path.read_bytes() for path in (folder / f"Split-{split}").iterdir()}


def test_distilled_rows_are_in_order_and_other_splits_unchanged(run, source, log, tmp_path):
    out = run(distillation=DISTILLATION)
    assert pairs(out) == list(map(distilled, original_pairs()))
    for split in ("eval", "test"):
        assert contents(out, split) == contents(Path(source.uri), split)
    assert sorted(path.name for path in out.iterdir()) == [
        "Split-eval",
        "Split-test",
        "Split-train",
    ]
    text = "5 of 7 targets translated by deep@1"
    assert [event["text"] for event in log("note")] == [text]
    findings = json.loads((tmp_path / "out/findings/augmentation.json").read_text())
    assert findings["steps"] == {"distillation": text}
    assert findings["models"]["distillation.teacher"]["digest"] == "d1"
    last = log("progress")[-1]
    assert (last["node"], last["fraction"]) == ("Augmenter", 1.0)
    assert "deep@1: 7 of 7 rows" in last["text"]


def test_originals_can_be_trained_on_as_well(run, parts):
    out = run(distillation={**DISTILLATION, "keep_original": True})
    expected = []
    for pair in original_pairs():
        expected += [pair] if distilled(pair) == pair else [pair, distilled(pair)]
    assert pairs(out) == expected


def flip_a_bit(content):
    position = content.index(b"CBA")  # of an output
    return content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]


def test_finished_parts_are_not_computed_again(run, finished, parts, tmp_path, monkeypatch):
    """As after a kill: some parts are missing, one is half written, and there is a failure."""
    assert [path.name for path in sorted(parts.iterdir())] == [
        f"{number:08d}.parquet" for number in range(4)
    ]
    for number in (1, 3):
        batch_results.batch_path(parts, number).unlink()
    (parts / ".00000003.parquet.abc.tmp").write_bytes(b"half")
    with pytest.raises(KeyError), batch_results.record_failure(parts):
        raise KeyError("of the killed run")
    computed, compute = [], model_pass.ModelPass.compute

    def count(self, model, rows):
        computed.extend(row["source"] for row in rows)
        return compute(self, model, rows)

    monkeypatch.setattr(model_pass.ModelPass, "compute", count)
    resumed = run(distillation=DISTILLATION)
    assert contents(resumed, "train") == contents(finished / "out/examples", "train")
    assert computed == ["a longer one", "b" * (MOST_LETTERS + 1), "z"]
    assert len(list((tmp_path / "parts").iterdir())) == 1


@pytest.mark.parametrize("damage", [lambda _: b"", lambda content: content[:-9], flip_a_bit])
def test_a_damaged_part_is_computed_again(run, finished, parts, damage):
    path = batch_results.batch_path(parts, 0)
    stored = pq.read_table(path)
    path.write_bytes(damage(path.read_bytes()))
    again = run(distillation=DISTILLATION)
    assert contents(again, "train") == contents(finished / "out/examples", "train")
    assert pq.read_table(path).equals(stored)


def test_a_refused_text_is_quoted():
    class Model:
        def predict(self, name, rows):
            raise InputLengthError("a source has more than 3 tokens")

    model_to_run = StartingModel(model="deep@1", path="", digest="")
    translate = ModelPass(model_to_run, {"source": "source"})
    with pytest.raises(UserError, match="begins with 'abcd'") as caught:
        translate.compute(Model(), [{"source": "abcd"}, {"source": "e"}])
    assert caught.value.where == "deep@1"


def test_the_error_of_a_worker_reaches_the_user(run, monkeypatch):
    def refuse(self, model, rows):
        raise UserError("a source has more than 3 tokens")

    monkeypatch.setattr(model_pass.ModelPass, "compute", refuse)
    with pytest.raises(UserError, match="more than 3 tokens"):
        run(distillation=DISTILLATION)


def test_the_best_pairs_are_kept_and_distilled(run, log):
    out = run(
        filter={"forward": "deep@1", "reverse": "deep@1", "keep": 0.5},
        distillation={**DISTILLATION, "keep_original": True},
    )
    costs = []
    for text, target in original_pairs():
        forward, reverse = (0.5 * len(x) / (len(x) + 1) for x in (target, text))
        costs.append(abs(forward - reverse) + (forward + reverse) / 2)
    best = sorted(sorted(range(len(costs)), key=costs.__getitem__)[:4])
    expected = []
    for pair in [original_pairs()[i] for i in best]:
        expected += [pair] if distilled(pair) == pair else [pair, distilled(pair)]
    assert pairs(out) == expected
    note, _ = log("note")
    worst = max(costs[i] for i in best)
    text = f"4 of 7 pairs (57.1%) kept by deep@1 and deep@1, with scores up to {worst:.2f}"
    assert note["text"] == text


def test_back_translated_pairs_are_tagged_and_limited(run, log, tmp_path):
    (tmp_path / "one.txt").write_text("ABC\n\n" + "B" * (MOST_LETTERS + 1) + "\n")
    (tmp_path / "two.txt").write_text("DE\nnever used\n")
    files = ["one.txt", "two.txt"]
    out = run(monolingual=files, back_translation={"model": "deep@1", "ratio": 0.4})
    assert pairs(out) == [*original_pairs(), ("<bt> CBA", "ABC"), ("<bt> ED", "DE")]
    *_, added = split_shards(f"{out}/Split-train")
    positions = [(example.file, example.line) for example in read_rows(added, [])]
    assert positions == [("one.txt", 1), ("two.txt", 1)]
    (note,) = log("note")
    text = "2 of 3 monolingual texts translated by deep@1 (beam) and added to 7 pairs"
    assert note["text"] == text


def test_monolingual_texts_have_the_encoding_of_the_data(run, tmp_path):
    (tmp_path / "one.txt").write_bytes("GRÜN\n".encode("cp1252"))
    section = {"model": "deep@1", "tag": None}
    out = run(monolingual=["one.txt"], encoding="cp1252", back_translation=section)
    assert pairs(out)[7:] == [("NÜRG", "GRÜN")]


def test_damaged_monolingual_texts_are_left_out(run, tmp_path):
    (tmp_path / "one.txt").write_bytes(b"GR\xdcN\nA\0B\nCD\n")
    out = run(monolingual=["one.txt"], back_translation={"model": "deep@1", "tag": None})
    assert pairs(out)[7:] == [("DC", "CD")]


def test_an_unreadable_file_of_texts_is_named(run, tmp_path):
    path = tmp_path / "one.txt.gz"
    path.write_bytes(gzip.compress(b"ABC\n" * 3000)[:-12])
    with pytest.raises(UserError, match="truncated after line") as caught:
        run(monolingual=["one.txt.gz"], back_translation={"model": "deep@1", "ratio": 900.0})
    assert caught.value.where == str(path)


def with_tag(tag, pair):
    """The row of a teacher that reads a tag as any other text."""
    source, target = pair
    tagged = f"<{tag}> {source}"
    is_usable = source and len(tagged) <= MOST_LETTERS
    return source, tagged.upper()[::-1] if is_usable else target


def test_the_teacher_reads_its_tag_before_each_source(run, finished, parts, log, tmp_path):
    out = run(distillation={**DISTILLATION, "teacher_tag": "en-de"})
    assert pairs(out) == [with_tag("en-de", pair) for pair in original_pairs()]
    assert len(list((tmp_path / "parts").iterdir())) == 2  # those without the tag are not used
    *_, note = log("note")
    assert note["text"] == "5 of 7 targets translated by deep@1 with the tag en-de"


def test_monolingual_texts_get_the_tag_of_their_own_model(run, log, tmp_path):
    (tmp_path / "one.txt").write_text("AB\n\u3000\n")
    section = {"model": "deep@1", "model_tag": "de-en", "tag": "<bt>"}
    out = run(monolingual=["one.txt"], back_translation=section)
    assert pairs(out)[7:] == [("<bt> BA >NE-ED<", "AB")]
    assert "translated by deep@1 with the tag de-en (beam)" in log("note")[-1]["text"]


def test_a_node_of_a_cluster_finds_teachers_with_the_tags_of_the_rows(monkeypatch, source):
    def find(config, registry, task, row_tags):
        assert config.distillation.teacher_tag == "de"
        raise UserError(f"{registry.root.name} {task} {row_tags}")

    monkeypatch.setattr(executor, "find_teachers", find)
    languages = Feature("language", TEXT, "extra", tags=("de", "fr"))
    settings = {
        "augmentation": {"distillation": {"teacher": "deep@1", "teacher_tag": "de"}},
        "task": "translation",
        "features": [feature.to_json() for feature in (*FEATURES, languages)],
    }
    properties = {"settings": json.dumps(settings), "models": "{}", "registry": "/models"}
    examples = {"examples": [source]}
    with pytest.raises(UserError, match=r"models translation \['de', 'fr'\]"):
        AugmenterExecutor().Do(examples, {"augmented_examples": [source]}, properties)


def test_rows_with_tags_are_translated_with_these(tmp_path, model, log):
    languages = Feature("language", TEXT, "extra", tags=("de", "fr"))
    texts = [("abc", "de"), ("xy", "fr"), ("", "fr")]
    rows = [row(text, i) | {"language": tag} for i, (text, tag) in enumerate(texts, 1)]
    source = fake_models.examples(tmp_path / "e", [rows])
    Path(source.uri, "Split-test").rename(Path(source.uri, "Split-train"))
    source.split_names, source.span = json.dumps(["train"]), 3
    features = (*FEATURES, languages)
    out = augment(tmp_path, model, source, features=features, distillation=DISTILLATION)
    assert pairs(out) == [with_tag(tag, (text, f"{text}!")) for text, tag in texts]
    assert log("note")[0]["text"].endswith("by deep@1 with the tags of the rows")
    one_tag = {**DISTILLATION, "teacher_tag": "fr"}
    out = augment(tmp_path, model, source, "one", features=features, distillation=one_tag)
    assert pairs(out) == [with_tag("fr", (text, f"{text}!")) for text, _ in texts]
