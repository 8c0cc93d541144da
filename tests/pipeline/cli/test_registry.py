"""The commands `regard registry` and `regard rollback`."""

import functools
import io
import json
import uuid

import pytest
from rich.console import Console
from typer.testing import CliRunner

from regard.components.registry.overview import list_versions
from regard.components.registry.prune import PruneResult
from regard.components.registry.rollback import rollback
from regard.components.registry.store import Registry
from regard.core.errors import UserError
from regard.core.storage import registry_folder
from regard.pipeline.cli import terminal
from regard.pipeline.cli.app import app
from regard.pipeline.cli.rendering import registry_tables
from tests.components.registry.models import push_models, weights_of

SPANS = [
    {"span": n, "name": str(n), "version": 2, "files": {}, "rows": {"train": 1200, "test": 0}}
    | {"fingerprint": "f" * 64}
    for n in (7, 8)
]
RECORD = {
    "metrics": {
        "bleu": {"value": 33.126, "signature": "nrefs:1"},
        "older": {"value": 0.5, "signature": ""},
    },
    "spans": SPANS,
    "rows": {"train": 2400, "test": 300},
    "data_fingerprint": "d" * 64,
    "blessing": "Passed: BLEU 33.13 is above the threshold of 30.00 and not worse than version 1.",
    "compared_with": "1",
    "warm_start": {"start": {"model": "m@1"}, "training": "t"},
}


@pytest.fixture
def registry(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    return push_models(tmp_path / "registry", 3, **RECORD)


def regard(*arguments):
    return CliRunner().invoke(app, arguments, catch_exceptions=False).stdout


def printed(show, width, terminal=True):
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)
    show(console)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_the_list_in_a_pipe_has_one_line_per_version(registry):
    rollback(registry, "m")
    regard("registry", "pin", "m@1")
    heading, *lines = regard("registry", "list").splitlines()
    assert heading.split("  ")[0] == "name"
    assert [line.split()[1] for line in lines] == ["4", "3", "2", "1"]
    assert "live, rolled back to 2  7 to 8 (2)  BLEU 33.13, older 0.5000  Passed: " in lines[0]
    assert "withdrawn" in lines[1]
    assert "withdrawn" not in lines[2]
    assert "pinned" in lines[3]


@pytest.mark.parametrize("width", [80, 120])
def test_the_list_fits_the_terminal(registry, width):
    rollback(registry, "m")
    lines = printed(lambda out: registry_tables.print_versions(list_versions(registry), out), width)
    assert max(map(len, lines)) <= width
    assert lines[2] == "    BLEU 33.13, older 0.5000"
    assert RECORD["blessing"] in " ".join(line.strip() for line in lines)


def test_replayed_spans_are_marked(tmp_path):
    old = {"span": 6, "name": "6", "version": None, "rows": {"train": 20}, "replayed": True}
    old |= {"available": 90, "fingerprint": "e" * 64}
    push_models(tmp_path, 1, spans=[{**old, "name": "5"}, old, *SPANS], rows={"train": 2440})
    (entry,) = list_versions(Registry(tmp_path))
    lines = printed(lambda out: registry_tables.print_versions([entry], out), 100, terminal=False)
    assert "  7 to 8 (2), replaying 5 to 6 (2)" in lines[1]


def test_the_list_as_json(registry):
    _, output, _ = json.loads(regard("registry", "list", "m", "--json"))
    assert (output["version"], output["live"], output["spans"]) == (2, False, SPANS)
    assert [score["label"] for score in output["scores"]] == ["BLEU", "older"]


def test_pin_and_unpin(registry):
    assert regard("registry", "pin", "m@1") == "m@1 is pinned.\n"
    assert regard("registry", "pin", "m@1") == "m@1 was pinned already.\n"
    assert regard("registry", "unpin", "m@1") == "m@1 is no longer pinned.\n"
    assert regard("registry", "unpin", "m@1") == "m@1 was not pinned.\n"
    with pytest.raises(UserError, match="m: The version is missing"):
        regard("registry", "pin", "m")
    with pytest.raises(UserError, match="has no version '9'"):
        regard("registry", "pin", "m@9")


def test_prune_prints_results_and_reasons(registry):
    regard("registry", "pin", "m@1")
    dry = regard("registry", "prune", "m", "--keep", "1", "--dry-run")
    assert dry.startswith("m@3  kept: live\nm@2  would be removed\nm@1  kept: pinned\n1 version (")
    assert registry.versions("m") == [1, 2, 3]
    with pytest.raises(UserError, match="Nothing was removed") as caught:
        regard("registry", "prune", "m", "--keep", "1")
    assert "--yes" in caught.value.remedy
    assert registry.versions("m") == [1, 2, 3]
    output = json.loads(regard("registry", "prune", "m", "--keep", "1", "--yes", "--json"))
    reasons = {one["version"]: one["kept_because"] for one in output["versions"]}
    assert reasons == {3: "live", 2: None, 1: "pinned"}
    assert registry.versions("m") == [1, 3]


@pytest.mark.parametrize(("answer", "versions"), [("n\n", [1, 2, 3]), ("y\n", [3])])
def test_prune_asks_in_a_terminal(registry, monkeypatch, answer, versions):
    monkeypatch.setattr(terminal, "is_interactive", lambda: True)
    arguments = ["registry", "prune", "m", "--keep", "1"]
    result = CliRunner().invoke(app, arguments, input=answer, catch_exceptions=False)
    assert "m@2  would be removed\n" in result.stderr
    assert "Remove these versions?" in result.stderr
    assert registry.versions("m") == versions
    assert result.exit_code == (0 if versions == [3] else 1)


def test_prune_without_results_to_remove():
    results = [PruneResult(1, 5, "live")]
    show = functools.partial(registry_tables.print_prune_results, "m", results, False)
    assert printed(show, 80) == ["m@1  kept: live", "0 versions (0 B) removed."]


def test_rollback_prints_how_to_restore(registry):
    assert regard("rollback", "m", "--reason", "why") == (
        "m@4 is live, with the model of m@2.\n"
        "m@3 is withdrawn. To restore it: regard rollback m 3\n"
    )
    assert weights_of(registry) == 2
    output = json.loads(regard("rollback", "m", "3", "--json"))
    assert output == {"name": "m", "version": 5, "rollback_of": 3, "rolled_back_from": 4}


def test_an_empty_registry_is_reported(tmp_path):
    output = regard("registry", "list", "--registry", str(tmp_path))
    assert output == f"No models in {tmp_path} yet.\n"


def test_a_registry_in_object_storage(tmp_path, monkeypatch):
    pytest.importorskip("fsspec")
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    uri = f"memory://{uuid.uuid4().hex}/registry"
    result = CliRunner().invoke(app, ["registry", "list", "--registry", uri])
    assert result.output == f"No models in {uri} yet.\n"
    push_models(registry_folder(uri), 2)
    entries = json.loads(
        CliRunner().invoke(app, ["registry", "list", "m", "--json", "--registry", uri]).output
    )
    assert [(entry["version"], entry["live"]) for entry in entries] == [(2, True), (1, False)]
    result = CliRunner().invoke(app, ["rollback", "m", "--registry", uri])
    assert "m@3 is live, with the model of m@1" in result.output
