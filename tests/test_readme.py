"""What README.md and CONTRIBUTING.md show must exist: links, commands, keys of the YAML."""

import re
from pathlib import Path

import pytest
import typer

from regard.pipeline import config
from regard.pipeline.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
_ALSO = {"runs": ("", "quickstart")}
PAGES = ("README.md", "CONTRIBUTING.md")


def text(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text(page), re.MULTILINE | re.DOTALL)


def test_the_example_of_own_data_loads(tmp_path):
    (example,) = blocks("README.md", "yaml")
    path = tmp_path / "mine.yaml"
    path.write_text(example, encoding="utf-8")
    loaded = config.load(path)
    assert loaded.name == "mine"
    assert loaded.evaluation.thresholds["bleu"] == 25.0


@pytest.mark.parametrize("page", PAGES)
def test_every_command_exists(page):
    group = typer.main.get_command(app)
    calls = re.findall(
        r"^regard ([a-z0-9-]+)(?: ([a-z0-9-]+))?", "\n".join(blocks(page, r"\w*")), re.MULTILINE
    )
    calls += re.findall(r"`regard ([a-z-]+)(?: ([a-z0-9-]+))?", text(page))
    for name, second in calls:
        assert name in group.commands, name
        inner = getattr(group.commands[name], "commands", None)
        # What `regard runs` is given may also be what its first command takes.
        assert inner is None or second in {*inner, *_ALSO.get(name, ())}, f"{name} {second}"


@pytest.mark.parametrize("page", PAGES)
def test_every_target_of_make_exists(page):
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    mentioned = set(re.findall(r"(?:^|`)make ([a-z-]+)", text(page), re.MULTILINE))
    assert mentioned
    assert mentioned - targets == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_mentioned_file_exists(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text(page))
    mentioned = re.findall(
        r"`((?:pipeline|models|components|requirements|tests|configs|docs)/[\w./-]+)`", text(page)
    )
    missing = [path for path in [*links, *mentioned] if not (ROOT / path).exists()]
    assert missing == []
