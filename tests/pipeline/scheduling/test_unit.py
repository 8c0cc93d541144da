"""The systemd unit, and what systemd itself says of it."""

import os
import shutil
import subprocess
import sys

import pytest

from components.errors import UserError
from pipeline.scheduling import unit
from pipeline.workspace import Workspace


@pytest.fixture
def text(tmp_path):
    folder = tmp_path / "my 100% data"
    folder.mkdir()
    config = folder / "tiny.yaml"
    config.write_text("name: tiny\ndata: {root: '${CORPUS}/${REGARD_DATA}', train: '${GONE:-a}'}\n")
    environment = {"CORPUS": 'a "b" $c', "UNUSED": "x", "REGARD_DATA": str(folder / "data")}
    options = ["--cron", "*/5 3 * * *"]
    return unit.unit("tiny", config, options, Workspace(folder / "home"), environment)


def test_it_has_the_interpreter_the_file_and_what_the_file_names(text, tmp_path):
    lines = text.splitlines()
    folder = f"{tmp_path}/my 100%% data"
    command = f'"{folder}/tiny.yaml" --cron "*/5 3 * * *"'
    assert f"ExecStart={sys.executable} -m pipeline.cli schedule {command}" in lines
    assert f'Environment="REGARD_HOME={folder}/home"' in lines
    assert f'Environment="REGARD_DATA={folder}/data"' in lines
    assert 'Environment="CORPUS=a \\"b\\" $c"' in lines
    assert not [line for line in lines if "UNUSED" in line or "GONE" in line]
    assert "KillSignal=SIGINT" in lines
    # A home that is not mounted yet ends with 2, as wrong settings do: it is started again.
    assert not [line for line in lines if line.startswith("RestartPreventExitStatus")]
    limits = {"StartLimitIntervalSec=900", "StartLimitBurst=10", "RestartSec=30"}
    assert limits <= set(lines)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_systemd_takes_it(text, tmp_path):
    path = tmp_path / "regard-tiny.service"
    path.write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(path)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_another_unit_is_replaced_only_by_force(tmp_path):
    path = unit.place("tiny", {"XDG_CONFIG_HOME": str(tmp_path)})
    assert path == tmp_path / "systemd/user/regard-tiny.service"
    unit.write(path, "one", force=False)
    unit.write(path, "one", force=False)
    with pytest.raises(UserError, match="another unit") as caught:
        unit.write(path, "two", force=False)
    assert "--force" in caught.value.remedy
    unit.write(path, "two", force=True)
    assert path.read_text() == "two"
