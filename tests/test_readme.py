"""What the documentation shows must exist: links, commands and their options, keys of the YAML."""

import re
from pathlib import Path

import pytest
import typer

from regard.pipeline import config
from regard.pipeline.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
PATTERNS = ("README.md", "CONTRIBUTING.md", "docs/*.md", "benchmarks/*.md")
PAGES = [str(path.relative_to(ROOT)) for pattern in PATTERNS for path in sorted(ROOT.glob(pattern))]


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
def test_every_command_and_option_exists(page):
    code = "\n".join(blocks(page, r"\w*")).replace("\\\n", " ")
    calls = re.findall(r"^regard ([a-z].*?)(?:  |#|\|| <|$)", code, re.MULTILINE)
    for call in calls + re.findall(r"`regard ([a-z][^`]*)`", text(page)):
        command, words = typer.main.get_command(app), call.split()
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        if command.name == "runs":
            command = command.commands["list"]  # the default
        assert not words or not hasattr(command, "commands"), call
        options = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in words if re.match("--?[a-z]", word)} <= options, call


@pytest.mark.parametrize("page", PAGES)
def test_every_target_of_make_exists(page):
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    code = "\n".join([*blocks(page, r"\w*"), *re.findall("`(make .*?)`", text(page))])
    assert set(re.findall("^make ([a-z-]+)", code, re.MULTILINE)) <= targets


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall("^#+ (.*)", text(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_every_mentioned_file_exists(page):
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", text(page)):
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link
    folders = "pipeline|models|components|serving|requirements|tests|configs|docs|benchmarks"
    mentioned = re.findall(rf"`((?:{folders})/[\w./-]+)`", text(page))
    assert [path for path in mentioned if not (ROOT / path).exists()] == []
