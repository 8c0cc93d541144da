"""The profile is the one that ExampleValidator writes of the same rows."""

import json
import tracemalloc

import pytest

from components.artifacts import Findings
from components.corpus_gen.spans import settled
from components.errors import UserError
from models.tasks.features import Feature
from pipeline.scheduling.look import look
from pipeline.scheduling.profile import keep, profile_of, remembered
from pipeline.workspace import Workspace
from tests.pipeline.scheduling.growing import CONFIG, Corpus

BEAM = [
    "--runner=FnApiRunner",
    "--direct_running_mode=in_memory",
    "--sdk_container_image=unused",  # else TFX packs itself up for remote workers each time: 2 s
]
OWN_FILES = "  eval: eval.tsv\n  test: test.tsv\n"
UNSPLIT = CONFIG.replace(OWN_FILES, "")


def spans(rule, files=OWN_FILES):
    """The configuration with a rule for its spans, and files for the other splits or none."""
    return UNSPLIT.replace("schedule:\n", f"{files}  spans: {rule}\nschedule:\n")


@pytest.fixture
def corpus(tmp_path):
    made = Corpus(tmp_path)
    for number in (1, 2, 3):
        made.span(number, count=300)
    return made


@pytest.fixture
def taken(corpus, tmp_path):
    """The section of a configuration, with its spans settled."""
    return lambda text: look(corpus.config(text=text), Workspace(tmp_path).pipeline("tiny")).data


@pytest.fixture
def validated(tmp_path, monkeypatch):
    """Runs CorpusGen and ExampleValidator, but for TFX's part, and gives the profile."""
    from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
    from tfx.types import standard_artifacts

    from components.corpus_gen.executor import Executor as CorpusGen
    from components.example_validator import executor as validator

    monkeypatch.setattr(validator.tfx_executor.Executor, "Do", lambda *_: None)
    context = BaseBeamExecutor.Context(beam_pipeline_args=BEAM, tmp_dir=str(tmp_path / "tmp"))

    def made(kind, name):
        artifact = kind()
        artifact.uri = str(tmp_path / name)
        return [artifact]

    def run(data):
        examples, anomalies = standard_artifacts.Examples, standard_artifacts.ExampleAnomalies
        corpus = {"examples": made(examples, "examples"), "findings": made(Findings, "corpus")}
        given = {"data": json.dumps(data), "fingerprint": ""}
        CorpusGen(context).Do({}, corpus, given)
        found = {"anomalies": made(anomalies, "none"), "findings": made(Findings, "found")}
        found["anomalies"][0].split_names = "[]"
        inputs = {"examples": corpus["examples"], "statistics": [None], "schema": [None]}
        asked = {"checks": "{}", "features": json.dumps(data["features"]), "production": ""}
        validator.Executor(context).Do(inputs, found, asked)
        return json.loads((tmp_path / "found" / "profile.json").read_text("utf-8"))

    return run


@pytest.mark.parametrize(
    "text",
    [
        spans("{test_share: 0.2}", files=""),
        spans("{window: 1, replay: 0.2}"),
        spans("{window: 2, replay: 0.2, test_share: 0.2}", files=""),
        spans("{window: 1, replay: 0.9}"),
    ],
    ids=["no-replay", "replay", "replay-and-split", "replay-of-all-there-is"],
)
def test_it_is_the_same(taken, validated, text):
    data = taken(text)
    assert profile_of(data) == validated(data)


def test_of_older_spans_what_is_replayed_counts(corpus, taken, validated):
    for number in range(1, 7):
        corpus.span(number, count=400, letters="abcdef" if number < 6 else "uvwxyz")
    data = taken(spans("{window: 1, replay: 0.2}"))
    made = profile_of(data)
    assert made == validated(data)
    assert made["rows"] == 500
    words = made["features"]["source"]["words"]
    assert sum(count for word, count in words.items() if word < "u") == 100
    assert sum(count for word, count in words.items() if word >= "u") == 400
    assert profile_of(taken(spans("{window: 1}")))["rows"] == 400


def test_a_row_that_older_spans_repeat_counts_as_often_as_it_is_replayed(corpus, taken, validated):
    corpus.write("train-001.tsv", ["same\tSAME\n"] * 500, append=True)
    corpus.write("train-002.tsv", ["same\tSAME\n"] * 100, append=True)
    data = taken(spans("{window: 1, replay: 0.25}"))
    made = profile_of(data)
    assert made == validated(data)
    assert made["rows"] == 400
    assert made["features"]["source"]["words"]["same"] == 50  # half, as of all older rows


def test_a_row_whose_image_is_missing_does_not_count(tmp_path, validated):
    import tensorflow as tf

    image = tf.io.encode_png(tf.zeros((2, 2, 3), tf.uint8)).numpy()
    for number in range(120):
        if number % 3:
            (tmp_path / f"{number}.png").write_bytes(image)
    for span in range(3):
        rows = [f"{n}.png\tpicture {n % 7}\n" for n in range(40 * span, 40 * span + 40)]
        (tmp_path / f"{span}.tsv").write_text("".join(rows))
    features = [Feature("image", "image"), Feature("caption", "text", role="reference")]
    data = settled(
        {
            "root": str(tmp_path),
            "features": [feature.to_json() for feature in features],
            "train": "{SPAN}.tsv",
            "eval": "0.tsv",
            "test": "0.tsv",
            "bad_rows": "skip",
            "bad_rows_limit": 0.5,
            "spans": {"window": 1, "replay": 0.25},
        }
    )
    made = profile_of(data)
    assert made == validated(data)
    assert made["rows"] == 27 + 9


@pytest.mark.parametrize("number", [1, 3])
def test_a_span_that_cannot_be_read_is_an_error(corpus, taken, number):
    corpus.write(f"train-{number:03d}.tsv", [])
    data = taken(spans("{window: 1, replay: 0.2}"))
    with pytest.raises(UserError, match="cannot be read") as caught:
        profile_of(data)
    assert caught.value.where.endswith(f"train-{number:03d}.tsv")


def test_older_rows_are_not_held(corpus, taken):
    held = {}
    for count in (6_000, 18_000):  # of 600 bytes, which are read in blocks of a megabyte
        rows = (f"{n % 100:03}{'x' * 600}\tword\n" for n in range(count))
        corpus.write("train-001.tsv", [*rows])
        data = taken(spans("{window: 1, replay: 0.99}"))
        tracemalloc.start()
        assert profile_of(data)["rows"] > count
        held[count] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert held[18_000] == pytest.approx(held[6_000], rel=0.1)


def test_it_is_made_once_for_the_same(corpus, tmp_path):
    paths = Workspace(tmp_path / "home").pipeline("tiny")
    data = look(corpus.config(), paths).data
    kept = tmp_path / "profile.json"
    made = remembered(data, "a", kept)
    assert made["rows"] == 900
    corpus.span(3, count=10)
    assert remembered(data, "a", kept) == made
    assert remembered(data, "b", kept)["rows"] == 610


@pytest.mark.parametrize("text", ["[]", "3", "{}"])
def test_one_of_another_shape_is_made_anew(corpus, tmp_path, text):
    kept, trained = tmp_path / "profile.json", tmp_path / "trained.json"
    kept.write_text(text)
    keep(kept, trained, "a")
    assert not trained.exists()
    paths = Workspace(tmp_path / "home").pipeline("tiny")
    assert remembered(look(corpus.config(), paths).data, "a", kept)["rows"] == 900
