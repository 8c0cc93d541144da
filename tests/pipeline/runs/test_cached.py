"""A second run starts no worker if it would take everything from the cache, and only then."""

import contextlib
import os
import shutil

import pytest
from ml_metadata import MetadataStore
from ml_metadata.proto import metadata_store_pb2

from regard.components.common import code_digest
from regard.core import events
from regard.core.files import folder_digest
from regard.pipeline.config.recorded import recorded_config
from regard.pipeline.context import local_context
from regard.pipeline.runs import cached, store, supervise
from regard.pipeline.runs.launch import RunRequest, run_pipeline
from regard.pipeline.runs.supervise import Ending
from regard.pipeline.workspace import Workspace
from tests.components.registry.models import write_version

CONFIG = """
name: tiny
data: {{root: ., train: {train}}}
tokenizer: {{type: char, vocab_size: 20, vocab_limit: soft}}
training: {{learning_rate: {rate}}}
evaluation: {{metrics: [exact_match]}}
"""
RELEASED = {"pushed": 1, "pushed_version": "1"}


class Display:
    def message(self, text):
        pass

    @contextlib.contextmanager
    def view(self, title, log):
        yield self

    def event(self, event, state):
        pass

    def refresh(self, state):
        pass


class Pipeline:
    """A pipeline whose worker only writes the outputs and events of two nodes."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.workers, self.pushed, self.ending = folder, 0, RELEASED, Ending(0, False)
        (folder / "train.tsv").write_text("a\tA\nb\tB\n")
        self.configure()
        monkeypatch.setenv("REGARD_HOME", str(folder / "home"))
        monkeypatch.setattr(supervise, "supervise", self.supervise)

    def configure(self, rate=0.01, train="train.tsv"):
        (self.folder / "tiny.yaml").write_text(CONFIG.format(rate=rate, train=train))

    @property
    def home(self):
        return Workspace.from_environment()

    @property
    def artifacts(self):
        return self.folder / "artifacts"

    def supervise(self, command, run, state, view, lock):
        self.workers += 1
        record = run.record()
        config, paths = recorded_config(run), run.workspace.pipeline("tiny")
        context = local_context(config, run.workspace, record.publish_anyway)
        events.write(run.events, "origin", plan=cached.plan_digest(context, config), parent=None)
        events.write(run.events, "plan", nodes=["CorpusGen", "Pusher"])
        published = self.folder / "published"
        published.mkdir(exist_ok=True)
        pushed = {**self.pushed, "pushed_destination": str(published)}
        for node, key, properties in (
            ("CorpusGen", "examples", {}),
            ("Pusher", "pushed_model", pushed),
        ):
            output = self.artifacts / node
            output.mkdir(parents=True, exist_ok=True)
            (output / "data").write_text(f"output of {node}")
            events.write(
                run.events, "node", node=node, state="done", outputs={key: str(output)},
                properties={key: properties}, digests={key: folder_digest(output)},
            )  # fmt: skip
        for event, _ in events.read(run.events):
            state.apply(event)
        paths.metadata.write_text(f"after run {self.workers}")
        return self.ending

    def run(self, **options):
        return run_pipeline(RunRequest(self.folder / "tiny.yaml", **options), Display())


@pytest.fixture
def pipeline(tmp_path, monkeypatch):
    return Pipeline(tmp_path, monkeypatch)


def without_run(summary):
    varying = ("run", "seconds", "nodes", "directory", "log")
    return {key: value for key, value in summary.items() if key not in varying}


@pytest.mark.parametrize(("pushed", "status"), [(RELEASED, 0), ({"pushed": 0}, 3)])
def test_runs_with_nothing_to_do_start_no_worker(pipeline, pushed, status):
    pipeline.pushed = pushed
    first = pipeline.run()
    for _ in range(2):
        later = pipeline.run()
        assert pipeline.workers == 1
        assert later.outcome.exit_status == first.outcome.exit_status == status
        assert without_run(later.summary) == without_run(first.summary)
        assert {node["state"] for node in later.summary["nodes"].values()} == {"cached"}
        record = later.run.record()
        assert record.executions_of == first.run.id
        assert record.plan == first.run.record().plan
        assert record.pushed_version == first.run.record().pushed_version
    assert "as in run" in later.run.log.read_text()


def rewrite(path, text, keep_time=False):
    status = path.stat()
    path.write_text(text)
    if not keep_time:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))


CHANGES = {
    "data": lambda one: rewrite(one.folder / "train.tsv", "a\tA\nb\tC\n"),
    "settings": lambda one: one.configure(rate=0.02),
    "output": lambda one: rewrite(one.artifacts / "CorpusGen/data", "output of CorpusGeN"),
    "additional file": lambda one: (one.artifacts / "CorpusGen/more").touch(),
    "missing output": lambda one: shutil.rmtree(one.artifacts / "CorpusGen"),
    "published version": lambda one: shutil.rmtree(one.folder / "published"),
    "production": lambda one: write_version(one.home.home, 7, digest="d"),
    "metadata": lambda one: rewrite(one.home.pipeline("tiny").metadata, "of another run"),
    "no metadata": lambda one: one.home.pipeline("tiny").metadata.unlink(),
    "no events": lambda one: store.runs_of(one.home.pipeline("tiny"))[-1].events.unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_starts_a_worker(pipeline, change):
    pipeline.run()
    CHANGES[change](pipeline)
    pipeline.run()
    assert pipeline.workers == 2
    pipeline.run()
    assert pipeline.workers == 2


def test_equal_content_with_another_time_starts_no_worker(pipeline):
    pipeline.run()
    path = pipeline.folder / "train.tsv"
    rewrite(path, path.read_text())
    pipeline.run()
    assert pipeline.workers == 1


def test_a_new_span_starts_a_worker(pipeline):
    for day in (1, 2):
        pipeline.folder.joinpath(f"day-{day}.tsv").write_text(f"{day}\tA\nb\tB\n")
    pipeline.configure(train="'day-{SPAN}.tsv'")
    pipeline.run()
    pipeline.run()
    assert pipeline.workers == 1
    pipeline.folder.joinpath("day-3.tsv").write_text("c\tC\nd\tD\n")
    pipeline.run()
    assert pipeline.workers == 2


def add_execution(file, name):
    """Add an execution of a pipeline to a database of ML Metadata."""
    sqlite = metadata_store_pb2.SqliteMetadataSourceConfig(filename_uri=str(file))
    client = MetadataStore(metadata_store_pb2.ConnectionConfig(sqlite=sqlite))
    context = metadata_store_pb2.Context(name=name)
    context.type_id = client.put_context_type(metadata_store_pb2.ContextType(name="pipeline"))
    execution = metadata_store_pb2.Execution()
    execution.type_id = client.put_execution_type(metadata_store_pb2.ExecutionType(name="node"))
    client.put_execution(execution, [], [context], reuse_context_if_already_exist=True)


def test_in_a_shared_database_own_executions_start_a_worker(pipeline):
    path = pipeline.folder / "tiny.yaml"
    path.write_text(path.read_text() + "metadata: {sqlite: shared.sqlite}\n")
    for name, workers in (("other", 1), ("tiny", 2)):
        run = pipeline.run().run
        assert run.record().context.startswith(f"tiny.{run.id}.")
        add_execution(pipeline.folder / "shared.sqlite", name)
        pipeline.run()
        assert pipeline.workers == workers


def test_edited_code_starts_a_worker(pipeline, monkeypatch):
    pipeline.run()
    monkeypatch.setattr(cached, "package_digest", lambda *_: "other")
    pipeline.run()
    assert pipeline.workers == 2


def test_the_package_digest_depends_on_every_source_file(tmp_path):
    package = tmp_path / "regard"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(code_digest.PACKAGE, package, ignore=ignore)
    digest = code_digest.package_digest(package=package)
    assert digest == code_digest.package_digest()
    for name in ("models/losses.py", "serving/web/page/style.css"):
        path = package / name
        path.write_bytes(path.read_bytes() + b" ")
        assert code_digest.package_digest(package=package) != digest
        digest = code_digest.package_digest(package=package)


@pytest.mark.parametrize(
    "options",
    [
        {"publish_anyway": True},
        {"first": "Trainer"},
        {"last": "Trainer"},
        {"runner": "beam"},
    ],
    ids=str,
)
def test_other_options_start_a_worker(pipeline, options):
    pipeline.run()
    pipeline.run(**options)
    assert pipeline.workers == 2


@pytest.mark.parametrize("ending", [Ending(1, False), Ending(130, True)])
def test_after_an_unsuccessful_run_a_worker_starts(pipeline, ending):
    pipeline.run()
    pipeline.ending = ending
    pipeline.configure(rate=0.02)
    pipeline.run()
    pipeline.ending = Ending(0, False)
    pipeline.configure()
    pipeline.run()
    assert pipeline.workers == 3


def test_after_a_part_of_the_pipeline_a_worker_starts(pipeline):
    pipeline.run(last="Trainer")
    pipeline.run()
    assert pipeline.workers == 2


def test_another_workspace_starts_a_worker(pipeline, monkeypatch):
    pipeline.run()
    monkeypatch.setenv("REGARD_HOME", str(pipeline.folder / "other"))
    pipeline.run()
    assert pipeline.workers == 2


def test_a_missing_data_file_is_the_same_error(pipeline):
    pipeline.run()
    (pipeline.folder / "train.tsv").unlink()
    with pytest.raises(store.UserError, match="train"):
        pipeline.run()
    assert pipeline.workers == 1
