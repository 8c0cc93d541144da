"""Every configuration that comes with Regard is right."""

from pathlib import Path

import pytest

from regard.pipeline.config import load

CONFIGS = sorted((Path(__file__).resolve().parents[3] / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_it_loads_and_is_called_like_its_file(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    assert load(path, home=tmp_path).name == path.stem


def test_multi30k_finds_what_fetch_brings_without_any_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REGARD_DATA", raising=False)
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    (path,) = (path for path in CONFIGS if path.stem == "multi30k-en-de")
    assert load(path).data.root == str(tmp_path / "data" / "multi30k")
