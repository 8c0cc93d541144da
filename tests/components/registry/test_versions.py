from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from components.errors import UserError
from components.registry import Registry


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


def test_names_and_versions_in_number_order(registry):
    assert registry.names() == ["multi30k", "quickstart"]
    assert registry.versions("quickstart") == [1, 2, 10]
    assert registry.latest("quickstart") == 10
    assert registry.latest("nothing") is None
    assert registry.latest("../none/quickstart") is None


def test_what_is_not_a_version_is_ignored(registry):
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


def test_a_registry_that_does_not_exist_is_empty(tmp_path):
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
        ("quickstrat", "no model 'quickstrat'[^$]*Did you mean 'quickstart'"),
        ("zzz", "Models there: multi30k, quickstart"),
        ("quickstart@3", "no version '3'[^$]*1, 2, 10"),
        ("quickstart@two", "no version 'two'"),
        ("quickstart@02", "no version '02'"),
        ("quickstart@\u0662", "no version"),
        (f"quickstart@{'9' * 5000}", "no version '999"),
        ("some/where", "there is no folder 'some/where'"),
        ("", "there is no model ''"),
    ],
)
def test_resolve_says_what_there_is(registry, text, message):
    with pytest.raises(UserError, match=message):
        registry.resolve(text)


def test_a_folder_without_a_model_is_refused(registry, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"no saved_model\.pb"):
        registry.resolve(str(tmp_path / "empty"))


def test_an_empty_registry_says_how_to_fill_it(tmp_path):
    with pytest.raises(UserError, match="regard run"):
        Registry(tmp_path).resolve("quickstart")


def test_record(registry):
    assert registry.record("quickstart", 2) == {"version": 2}
    assert registry.record("multi30k", 1) == {}
    with pytest.raises(UserError, match="no version '9'"):
        registry.record("quickstart", 9)
    (registry.root / "quickstart" / "2" / "regard.json").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match=r"regard\.json: not valid JSON"):
        registry.record("quickstart", 2)


def test_it_needs_no_tensorflow():
    code = "import sys, components.registry; print('tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "False"
