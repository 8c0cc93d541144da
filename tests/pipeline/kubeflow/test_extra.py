"""Without the extra the commands say so."""

import sys

import pytest
from typer.testing import CliRunner

from components.errors import UserError
from pipeline.cli import app
from pipeline.kubeflow.extra import require
from tests.pipeline.kubeflow.pipelines import write_config


class Without:
    """Finds nothing of some packages, before anything else looks for them."""

    def __init__(self, *names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return


@pytest.fixture(params=["kfp", "kfp_server_api"])
def without(request, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == request.param]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Without(request.param), *sys.meta_path])
    return request.param


def test_with_it_nothing_is_said():
    require()


@pytest.mark.parametrize("command", ["compile", "lint", "submit", "schedule"])
def test_a_command_names_what_to_install(without, tmp_path, command):
    config = write_config(tmp_path)
    more = ["--to", "kubeflow", "--cron", "@daily"] if command == "schedule" else []
    done = CliRunner().invoke(app, [command, str(config), *more])
    assert isinstance(done.exception, UserError)
    assert f"there is no {without}" in done.exception.message
    assert "pip install 'regard[kubeflow]'" in done.exception.remedy
