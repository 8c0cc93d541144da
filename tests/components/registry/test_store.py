import json
import subprocess
import sys
from pathlib import Path

import pytest

from regard.components.registry.store import LATEST, Registry, production_baseline
from regard.core.errors import UserError


def put(root: Path, name: str, version: str, record: dict | None = None) -> Path:
    folder = root / name / version
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"model")
    if record is not None:
        (folder / "regard.json").write_text(json.dumps(record), encoding="utf-8")
    return folder


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    for version in ("1", "2", "10"):
        put(tmp_path, "quickstart", version, {"version": int(version)})
    put(tmp_path, "multi30k", "1")
    return Registry(tmp_path)


def test_names_and_versions_are_sorted(registry):
    assert registry.names() == ["multi30k", "quickstart"]
    assert registry.versions("quickstart") == [1, 2, 10]
    assert registry.latest("quickstart") == 10
    assert registry.latest("nothing") is None
    assert registry.latest("../none/quickstart") is None


def test_other_folders_are_ignored(registry):
    put(registry.root, "quickstart", ".pushing-1")
    put(registry.root, "quickstart", "v11")
    put(registry.root, "quickstart", "012")
    put(registry.root, "quickstart", str(2**63))
    put(registry.root, "quickstart", "\u0663")
    put(registry.root, ".hidden", "1")
    (registry.root / "quickstart" / "13").mkdir()  # no SavedModel inside
    (registry.root / "quickstart" / "14").symlink_to("nowhere")
    assert registry.versions("quickstart") == [1, 2, 10]
    assert registry.names() == ["multi30k", "quickstart"]


def test_a_missing_registry_is_empty(tmp_path):
    assert Registry(tmp_path / "none").names() == []


def test_resolve_by_name_version_and_path(registry, tmp_path):
    root = registry.root
    assert registry.resolve("quickstart") == root / "quickstart" / "10"
    assert registry.resolve("quickstart@2") == root / "quickstart" / "2"
    assert registry.resolve(str(root / "multi30k" / "1")) == root / "multi30k" / "1"
    assert registry.resolve(root / "quickstart") == root / "quickstart" / "10"
    exported = put(tmp_path / "artifact", "model", "Format-Serving")
    assert registry.resolve(exported.parent) == exported


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("quickstrat", "no model 'quickstrat'[^$]*Did you mean quickstart"),
        ("zzz", "Choices: multi30k, quickstart"),
        ("quickstart@3", "no version '3'[^$]*1, 2, 10"),
        ("quickstart@two", "no version 'two'"),
        ("quickstart@02", "no version '02'"),
        ("quickstart@\u0662", "no version"),
        (f"quickstart@{'9' * 5000}", "no version '999"),
        ("some/where", "There is no folder 'some/where'"),
        ("", "There is no model ''"),
    ],
)
def test_resolve_lists_the_available_models(registry, text, message):
    with pytest.raises(UserError, match=message):
        registry.resolve(text)


def test_a_folder_without_a_model_is_an_error(registry, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"no saved_model\.pb"):
        registry.resolve(str(tmp_path / "empty"))


def test_an_empty_registry_suggests_a_run(tmp_path):
    with pytest.raises(UserError, match="regard run"):
        Registry(tmp_path).resolve("quickstart")


def test_records_of_versions(registry):
    assert registry.record("quickstart", 2).to_dict() == {"version": 2}
    assert registry.record("multi30k", 1).to_dict() == {}
    with pytest.raises(UserError, match="no version '9'"):
        registry.record("quickstart", 9)
    (registry.root / "quickstart" / "2" / "regard.json").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match=r"regard\.json: not a valid record: Invalid JSON"):
        registry.record("quickstart", 2)


def test_importing_the_registry_imports_no_tensorflow():
    code = "import sys, regard.components.registry; print('tensorflow' in sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert process.stdout.strip() == "False"


def test_the_production_baseline_is_the_given_or_the_newest_version(tmp_path):
    assert production_baseline("", "") == ("", "")
    assert production_baseline("/registry/m/3", "3") == ("/registry/m/3", "3")
    assert production_baseline(str(tmp_path / "m"), LATEST) == ("", "")
    for version in (0, 2, 10):
        folder = tmp_path / "m" / str(version)
        folder.mkdir(parents=True)
        (folder / "saved_model.pb").write_bytes(b"graph")
        assert production_baseline(str(tmp_path / "m"), LATEST) == (str(folder), str(version))
