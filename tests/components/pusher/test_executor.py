import errno
import json
from pathlib import Path

import pytest
from tfx.types import standard_artifacts

from regard.components.common.artifact_types import Findings
from regard.components.data.profiles import PROFILE_FILE
from regard.components.pusher import executor
from regard.components.pusher.executor import PusherExecutor
from regard.components.registry.prune import prune
from regard.components.registry.rollback import rollback
from regard.components.registry.store import Registry
from regard.core import events, provenance
from regard.core.errors import UserError
from regard.serving.contract import PROFILE

SENTENCE = "Passed: BLEU 33.1 is above the threshold of 30.0."
METRICS = {
    "bleu": {"name": "bleu", "label": "BLEU", "value": 33.1, "signature": "nrefs:1", "scale": 100.0}
}

PROFILE_TEXT = '{"rows": 3, "features": {}}'


class Case:
    """A model with its blessings, and a registry."""

    def __init__(self, root: Path):
        self.root = root
        self.registry = root / "registry"
        self.model = self.artifact(standard_artifacts.Model)
        self.blessing = self.artifact(standard_artifacts.ModelBlessing)
        self.infra = self.artifact(standard_artifacts.InfraBlessing)
        self.evaluation = self.artifact(standard_artifacts.ModelEvaluation)
        self.findings = self.artifact(Findings)
        self.corpus = self.artifact(Findings, "corpus")
        self.pushed = self.artifact(standard_artifacts.PushedModel)
        Path(self.findings.uri, PROFILE_FILE).write_text(PROFILE_TEXT, encoding="utf-8")
        export = Path(self.model.uri, "Format-Serving")
        (export / "variables").mkdir(parents=True)
        (export / "saved_model.pb").write_bytes(b"graph")
        (export / "variables" / "variables.index").write_bytes(b"index")
        blessing = json.dumps({"blessed": True, "sentence": SENTENCE, "verdicts": []})
        Path(self.blessing.uri, "blessing.json").write_text(blessing, encoding="utf-8")
        metrics = json.dumps({"rows": 3, "metrics": METRICS, "production": {"version": "4"}})
        Path(self.evaluation.uri, "metrics.json").write_text(metrics, encoding="utf-8")
        corpus = json.dumps({"rows": {"train": 9}, "files": [], "spans": [{"name": "7"}]})
        Path(self.corpus.uri, "corpus.json").write_text(corpus, encoding="utf-8")
        self.inputs = {
            "model": [self.model],
            "model_blessing": [self.blessing],
            "infra_blessing": [self.infra],
            "evaluation": [self.evaluation],
            "findings": [self.findings],
            "corpus": [self.corpus],
        }
        self.bless(1, 1)

    def artifact(self, kind, name=""):
        artifact = kind()
        artifact.uri = str(self.root / (name or kind.TYPE_NAME))
        Path(artifact.uri).mkdir()
        return artifact

    def bless(self, model: int, infra: int) -> None:
        self.blessing.set_int_custom_property("blessed", model)
        self.infra.set_int_custom_property("blessed", infra)

    def push(self, context: PusherExecutor.Context | None = None, **more: object) -> dict:
        record = {"data_fingerprint": "abc", "config": {"name": "m"}, "compared_with": "4"}
        properties = {"registry": str(self.registry), "name": "m", "code": "c0de"}
        properties |= {"publish_anyway": 0, **more}
        PusherExecutor(context).Do(
            self.inputs,
            {"pushed_model": [self.pushed]},
            {"record": json.dumps(record), **properties},
        )
        return json.loads(Path(self.pushed.uri, "pushed.json").read_text(encoding="utf-8"))


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_a_blessed_model_is_pushed_with_a_record(case, tmp_path, monkeypatch):
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    result = case.push()
    folder = case.registry / "m" / "1"
    assert result["path"] == str(folder)
    assert case.pushed.get_int_custom_property("pushed") == 1
    assert case.pushed.get_string_custom_property("pushed_version") == "1"
    assert case.pushed.get_string_custom_property("pushed_destination") == str(folder)
    assert not (folder / "assets.extra" / "tf_serving_warmup_requests").exists()
    assert (folder / PROFILE).read_text(encoding="utf-8") == PROFILE_TEXT
    record = Registry(case.registry).record("m", 1)
    assert not record.run
    assert record.data_fingerprint == "abc"
    assert record.config == {"name": "m"}
    assert record.to_dict()["metrics"] == {"bleu": {"value": 33.1, "signature": "nrefs:1"}}
    assert record.compared_with == "4"
    assert record.rows == {"train": 9}
    assert [span.name for span in record.spans] == ["7"]
    assert "files" not in record.to_dict()
    assert record.blessing == SENTENCE
    assert {"tensorflow", "keras", "tfx"} <= set(record.stack)
    assert record.regard == provenance.code_version()
    assert record.code == "c0de"
    (note,) = (event for event, _ in events.read(log))
    assert (note["kind"], note["node"]) == ("result", "Pusher")
    assert note["text"] == f"Pushed as m@1: {folder}"


def test_a_model_is_pushed_without_optional_inputs(case):
    for name in ("infra_blessing", "evaluation", "findings", "corpus"):
        del case.inputs[name]
    assert case.push()["pushed"]
    record = Registry(case.registry).record("m", 1)
    assert (record.metrics, record.rows) == ({}, {})
    assert not (case.registry / "m" / "1" / PROFILE).exists()


def test_the_record_contains_run_time_values(case):
    """On a cluster: CorpusGen's fingerprint and the run's parameters."""
    Path(case.corpus.uri, "corpus.json").write_text(json.dumps({"fingerprint": "f00"}))
    config = {"name": "m", "training": {"max_epochs": 20, "seed": 17}}
    unknown = json.dumps({"data_fingerprint": "", "config": config})
    case.push(record=unknown, max_epochs=3)
    record = Registry(case.registry).record("m", 1)
    assert record.data_fingerprint == "f00"
    assert record.config["training"] == {"max_epochs": 3, "seed": 17}


def test_the_record_has_the_start_that_the_trainer_found(case):
    start = {"start": {"model": "m@7"}, "training": "k3y"}
    case.model.set_string_custom_property("warm_start", json.dumps(start))
    case.push()
    assert Registry(case.registry).record("m", 1).to_dict()["warm_start"] == start


@pytest.mark.parametrize(
    ("context", "run"),
    [
        ("20261120-101643", "20261120-101643"),
        ("m.20261120-101643-02.1f3a9c2e", "20261120-101643-02"),  # in a shared database
        ("2026-11-20T10:16:43.123", "2026-11-20T10:16:43.123"),  # of a pipeline of the user
    ],
)
def test_the_record_names_the_run(case, context, run):
    case.push(PusherExecutor.Context(pipeline_run_id=context))
    assert Registry(case.registry).record("m", 1).run == run


def test_the_compared_version_is_recorded_without_a_comparison(case):
    """The next run of the same recipe compares with it."""
    path = Path(case.evaluation.uri, "metrics.json")
    evaluation = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**evaluation, "production": None}), encoding="utf-8")
    case.push()
    assert Registry(case.registry).record("m", 1).compared_with == "4"


def test_the_same_model_keeps_its_version(case):
    """Also if a process was killed between the push and the update of ML Metadata."""
    case.push()
    Path(case.findings.uri, PROFILE_FILE).write_text("{}", encoding="utf-8")
    case.pushed = case.artifact(standard_artifacts.PushedModel, "again")
    result = case.push()
    assert result["version"] == 1
    assert "already" in result["text"]
    assert case.pushed.get_int_custom_property("pushed") == 1
    assert Registry(case.registry).versions("m") == [1]


@pytest.mark.parametrize(
    ("model", "infra", "words"), [(0, 1, SENTENCE), (1, 0, "serving check failed")]
)
def test_both_blessings_are_required(case, model, infra, words):
    case.bless(model, infra)
    result = case.push()
    assert result["pushed"] is False
    assert words in result["text"]
    assert case.pushed.get_int_custom_property("pushed") == 0
    assert not case.registry.exists()


def test_publish_anyway(case):
    case.bless(0, 1)
    result = case.push(publish_anyway=1)
    assert result["version"] == 1
    record = Registry(case.registry).record("m", 1)
    assert record.blessing == f"{SENTENCE} Published with --publish-anyway."


def test_the_serving_check_is_required_even_then(case):
    case.bless(0, 0)
    assert case.push(publish_anyway=1)["pushed"] is False
    assert not case.registry.exists()


def test_a_read_only_registry_is_a_user_error(case, monkeypatch):
    def raise_error(*_):
        raise OSError(errno.EROFS, "Read-only file system", str(case.registry))

    # Permissions do not apply to root, which may run this test.
    monkeypatch.setattr(executor, "push", raise_error)
    with pytest.raises(UserError, match="Read-only file system") as caught:
        case.push()
    assert caught.value.where == str(case.registry)
    assert "serving.registry" in caught.value.remedy


def test_warm_up_requests_are_pushed_with_the_model(case):
    Path(case.infra.uri, "tf_serving_warmup_requests").write_bytes(b"requests")
    case.push()
    pushed = case.registry / "m" / "1"
    assert (pushed / "assets.extra" / "tf_serving_warmup_requests").read_bytes() == b"requests"
    # Warm-up requests are not part of the model's content.
    Path(case.infra.uri, "tf_serving_warmup_requests").write_bytes(b"other requests")
    assert case.push()["text"].startswith("m@1 is this same model already")


def test_a_known_model_is_a_note_which_stays_visible_above_the_summary(case, tmp_path, monkeypatch):
    case.push()
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    case.push()
    ((event, _),) = events.read(log)
    assert event["kind"] == "note"
    assert event["text"].startswith("m@1 ")


def test_a_withdrawn_model_is_not_pushed(case):
    case.push()
    Path(case.model.uri, "Format-Serving", "saved_model.pb").write_bytes(b"another graph")
    case.push()
    rollback(Registry(case.registry), "m")
    result = case.push()
    assert result["pushed"] is False
    assert "Production was rolled back from this model, m@2" in result["text"]
    assert "`regard rollback m 2`" in result["text"]
    assert case.pushed.get_int_custom_property("pushed") == 0
    assert Registry(case.registry).versions("m") == [1, 2, 3]
    prune(Registry(case.registry), "m", 1, withdrawn=True)
    assert case.push()["text"].endswith("rolled back from this model, m@2.")


@pytest.mark.parametrize("anyway", [0, 1])
def test_a_blessing_of_ones_own_is_needed_too(case, anyway):
    own = case.artifact(standard_artifacts.ModelBlessing, "own")
    own.set_string_custom_property("reason", "3 rows have profanity.")
    case.inputs["own_blessing"] = [own]
    result = case.push(publish_anyway=anyway)
    assert result["pushed"] == bool(anyway)
    if anyway:
        assert Registry(case.registry).record("m", 1).blessing.endswith("with --publish-anyway.")
        return
    assert result["text"] == "Not pushed. 3 rows have profanity."
    own.set_int_custom_property("blessed", 1)
    assert case.push()["pushed"]
