"""What the documentation shows is true: links, commands, configurations, and code that runs.

A block that cannot run here follows a line with the reason, ``<!-- not run: ... -->``.
"""

import ast
import json
import re
import shlex
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
import typer
import yaml

from regard.components.data.cell_values import CellParser
from regard.core.errors import UserError
from regard.models import tasks
from regard.models.metrics import METRICS
from regard.models.settings.annotations import sections_of
from regard.pipeline import config
from regard.pipeline.cli.app import app
from regard.pipeline.cli.commands import COMMANDS, load
from regard.pipeline.config.config import config_class

ROOT = Path(__file__).resolve().parent.parent
PATTERNS = ("*.md", "docs/**/*.md", "benchmarks/**/*.md")
PAGES = [
    page.relative_to(ROOT).as_posix()
    for pattern in PATTERNS
    for page in sorted(ROOT.glob(pattern))
    if ".venv" not in page.parts
]
BLOCK = re.compile(r"^(<!-- not run: [^\n]+ -->\n)?( *)```(\w*)\n(.*?)^ *```", re.M | re.S)
# Where one command ends and the next one begins, and what redirects its input and output.
OPERATORS = {"|", "||", "&", "&&", ";", "(", ")", "do"}
REDIRECTIONS = {"<", ">", ">>"}
BASE = {"name": "x", "data": {"train": "{SPAN}.tsv"}}
HISTORY = "CHANGELOG.md"  # with commands that were removed


def text(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page, *languages, marked=True):
    """The blocks of code in some languages; those with a mark only if ``marked``."""
    return [
        re.sub(f"^{indent}", "", code, flags=re.M)
        for mark, indent, language, code in BLOCK.findall(text(page))
        if language in languages and (marked or not mark)
    ]


def pages_with(language):
    return [page for page in PAGES if blocks(page, language)]


def test_a_mark_is_about_the_next_block_only():
    page = "<!-- not run: a -->\n```sh\none\n```\ntext\n```sh\ntwo\n```\n<!-- not run: b -->\n"
    assert [bool(mark) for mark, *_ in BLOCK.findall(page + "```sh\nthree\n```\n")] == [
        True,
        False,
        True,
    ]


def calls(code, is_list):
    """The arguments of every call of ``regard`` in shell code, or in a list with explanations."""
    for line in code.replace("\\\n", " ").splitlines():
        if "regard " not in line or (is_list and not re.match(r"[\d* /]*regard ", line)):
            continue
        line = re.split(r"\s{2,}(?!\S*regard )", line)[0] if is_list else line
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        command, skip = [], False
        for word in [*lexer, ";"]:
            if word in OPERATORS:
                while command and re.match(r"\w+=|while$|exec$", command[0]):
                    command = command[1:]
                if command[:1] == ["regard"]:
                    yield command[1:]
                command = []
            elif word not in REDIRECTIONS and not skip:
                command.append(word)
            skip = word in REDIRECTIONS


ROOT_COMMAND = typer.main.get_command(app)
LOADED = {name: load(name) for name in COMMANDS}


def find_command(words):
    """The command that words name, and the words after its name."""
    if not words or words[0] not in COMMANDS:
        return ROOT_COMMAND, words
    command, words = LOADED[words[0]], words[1:]
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    return command, words


@pytest.mark.parametrize("page", PAGES)
def test_every_command_has_valid_arguments(page):
    for language in ("sh", ""):
        for code in blocks(page, language):
            for words in calls(code, is_list=not language):
                command, rest = find_command(words)
                try:
                    command.make_context("regard", list(rest))
                except typer.Exit:  # of --help
                    pass
                except Exception as error:
                    pytest.fail(f"regard {shlex.join(words)}: {error}")


@pytest.mark.parametrize("page", sorted({*PAGES} - {HISTORY}))
def test_every_command_in_a_sentence_exists(page):
    for call in re.findall(r"(?<!`)`regard ([a-z][^`]*)`", text(page)):
        command, words = find_command(call.split())
        assert not words or not hasattr(command, "commands"), call
        options = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in words if re.match("--?[a-z]", word)} <= options, call


@pytest.mark.parametrize("page", PAGES)
def test_every_target_of_make_exists(page):
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    code = "\n".join([*blocks(page, "sh", ""), *re.findall("`(make .*?)`", text(page))])
    assert set(re.findall("^make ([a-z-]+)", code, re.MULTILINE)) <= targets


@pytest.mark.parametrize("page", pages_with("yaml"))
def test_every_configuration_is_valid(page, tmp_path):
    """A part of a configuration is valid with the required keys, or also with an earlier part."""
    earlier = BASE
    path = tmp_path / "x.yaml"
    for code in blocks(page, "yaml", marked=False):
        content = yaml.safe_load(code)
        if "name" in content and "data" in content:
            path.write_text(code, encoding="utf-8")
            config.load(path)
            continue
        alone, joined = merged(BASE, content), merged(earlier, content)
        for part in [alone] if alone == joined else [joined, alone]:
            path.write_text(yaml.safe_dump(part), encoding="utf-8")
            try:
                config.load(path)
                break
            except UserError as error:
                reason = error
        else:
            pytest.fail(f"{code}\n{reason}")
        earlier = joined


def merged(base, content):
    """Sections of a configuration with the keys of a part of it."""
    return base | {
        key: base.get(key, {}) | value if isinstance(value, dict) else value
        for key, value in content.items()
    }


@pytest.mark.parametrize("page", pages_with("json"))
def test_every_json_object_is_valid(page):
    for code in blocks(page, "json"):
        assert json.loads(code)


@pytest.mark.parametrize("page", pages_with("python"))
def test_python_code_runs(page, tmp_path, monkeypatch):
    """The blocks of a page run one after another in one folder; marked ones are only compiled."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["script.py"])
    namespace = {"__name__": "__main__"}
    for code in blocks(page, "python"):
        compile(code, page, "exec")
    for code in blocks(page, "python", marked=False):
        exec(compile(code, page, "exec"), namespace)
    if page.endswith("/layers.md"):
        assert namespace["states"].shape == (2, 5, 8)
        assert np.isfinite(float(namespace["loss"]))


SECTIONS = {section for task in tasks.TASKS.own for section in config_class(task).model_fields}
KEYS = {
    ".".join(map(str, (*path, name)))
    for task in tasks.TASKS.own
    for path, section in sections_of(config_class(task))
    for name in section.model_fields
}


def prose(page):
    """The text of a page without blocks of code and without what other tools call their keys."""
    lines, is_ours = [], None
    for line in BLOCK.sub("", text(page)).splitlines():
        cells = re.split(r"(?<!\\)\|", line)[1:-1]
        if not line.startswith("|"):
            is_ours = None
        elif is_ours is None:
            names = [cell.strip() for cell in cells]
            is_ours = [name == "Regard" or "Regard" not in names for name in names]
        else:
            line = " ".join(cell for cell, ours in zip(cells, is_ours, strict=True) if ours)
        lines.append(line)
    return "\n".join(lines)


@pytest.mark.parametrize("page", sorted({*PAGES} - {HISTORY}))
def test_every_mentioned_key_exists(page):
    """Of every `section.key` in a sentence or table; a number in it is the index of a list."""
    mentioned = re.findall(r"(?<!`)`([a-z_]+(?:\.\w+)+)(?=[`:= ])", prose(page))
    keys = {re.sub(r"\.\d+(?=\.|$)", "", key) for key in mentioned}
    files = {".json", ".py", ".yaml", ".md", ".safetensors"}
    unknown = {
        key
        for key in keys - KEYS
        if key.partition(".")[0] in SECTIONS and Path(key).suffix not in files
    }
    assert unknown == set()


# An output of the Trainer, a signature, a missing key, and an argument of a layer.
NO_KEYS = {"model_run", "serving_default", "repetition_penalty", "return_weights"}


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/coming-from/")])
def test_every_key_for_newcomers_exists(page):
    """Also of the keys without a section in the columns that name Regard's."""
    cells = [line for line in prose(page).splitlines() if line not in text(page).splitlines()]
    names = {part for key in KEYS for part in key.split(".")} | NO_KEYS
    mentioned = set(re.findall(r"`([a-z]+(?:_[a-z0-9]+)+)(?=[`:])", "\n".join(cells)))
    mentioned |= set(re.findall(r"\b([a-z]+(?:_[a-z0-9]+)+): ", "\n".join(cells)))
    assert mentioned
    assert mentioned - names == set()


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall("^#+ (.*)", text(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def functions(path):
    """The functions and classes of a Python file, and methods with the names of their classes."""

    def names(body, prefix=""):
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield f"{prefix}{node.name}"
                yield from names(node.body, f"{prefix}{node.name}.")

    return set(names(ast.parse(path.read_text(encoding="utf-8")).body))


GENERATED = ("configuration.md", "commands.md", "metrics.md", "python.md")  # `make docs` checks


@pytest.mark.parametrize("page", PAGES)
def test_every_mentioned_file_exists(page):
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", text(page)):
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), link
        if anchor and target.suffix == ".py":  # docs/site_code.py shows their source
            assert set(anchor.split(",")) <= functions(target), link
        elif anchor and target.name not in GENERATED:
            assert anchor in anchors(target), link
    folders = (
        "pipeline|models|components|serving|requirements|tests|configs|docs|benchmarks|examples"
    )
    mentioned = re.findall(rf"`((?:{folders})/[\w./-]+)`", text(page))
    assert [path for path in mentioned if not (ROOT / path).exists()] == []


@pytest.fixture(scope="module")
def generators():
    spec = spec_from_file_location("reference_pages", ROOT / "docs" / "reference_pages.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.GENERATORS


def test_every_generated_reference_has_a_page(generators):
    pages = "".join(text(page) for page in PAGES)
    marks = set(re.findall(r"^<!-- generated: (\w+) -->$", pages, re.MULTILINE))
    assert marks == set(generators)


def test_the_reference_lists_every_command_and_option(generators):
    reference = generators["commands"]()
    sections = dict(re.findall(r"^#+ `(regard [\w -]+)`\n(.*?)(?=^#|\Z)", reference, re.M | re.S))

    def check(command, name):
        for child, subcommand in getattr(command, "commands", {}).items():
            check(subcommand, f"{name} {child}")
        if not hasattr(command, "commands"):
            options = {
                opt for parameter in command.params for opt in parameter.opts if opt.startswith("-")
            }
            assert options <= set(re.findall(r"--?[\w-]+", sections[name])), name

    for name, command in LOADED.items():
        check(command, f"regard {name}")
    assert "| `CONFIG` | The pipeline's YAML file. | required |" in sections["regard run"]
    assert (
        "| `--runner` `RUNNER` | Pipeline runner: local or beam. | `local` |"
        in sections["regard run"]
    )


def test_the_reference_lists_every_key(generators):
    reference = generators["configuration"]()
    keys = set(re.findall(r"^\| `([\w]+)`", reference, re.MULTILINE))
    headings = set(re.findall(r"^#+ `([\w.]+)`", reference, re.MULTILINE))
    for task in tasks.TASKS.own:
        for path, section in sections_of(config_class(task)):
            assert not path or ".".join(map(str, path)) in headings
            names = {
                n for n, field in section.model_fields.items() if field.annotation is not type(None)
            }
            assert names - {"type"} <= keys
    assert "| `batch_tokens` |" in reference
    assert "| `type: scaled_dot` | q·k / √width for equal widths (Vaswani 2017). |  |" in reference


def test_the_reference_shows_signatures_of_every_metric(generators):
    reference = generators["metrics"]()
    assert re.findall(r"^\| `(\w+)`", reference, re.MULTILINE) == list(METRICS.own)
    assert r"`nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:" in reference
    assert "undefined" not in reference.partition("\n\n")[0]


def test_the_example_of_own_data_loads(tmp_path):
    (example,) = blocks("README.md", "yaml")
    path = tmp_path / "mine.yaml"
    path.write_text(example, encoding="utf-8")
    assert config.load(path).evaluation.thresholds["bleu"] == 25.0


CAPTIONING = "docs/how-to/captioning.md"
EXPECTED = [
    {"image": "1_a.jpg", "caption": ["A dog , running .", "Two dogs, one \u201cred\u201d"]},
    {"image": "2_b.jpg", "caption": ["A child"]},
]
PAIRS = [(row["image"], caption) for row in EXPECTED for caption in row["caption"]]
COCO = {
    "images": [{"id": 7, "file_name": "1_a.jpg"}, {"id": 3, "file_name": "2_b.jpg"}],
    "annotations": [
        {"id": i, "image_id": 7 if name == "1_a.jpg" else 3, "caption": f"{caption}\n"}
        for i, (name, caption) in enumerate(PAIRS)
    ],
}
ANNOTATIONS = {
    "Flickr8k.token.txt": "".join(f"{name}#{i}\t{c}\n" for i, (name, c) in enumerate(PAIRS)),
    "captions.txt": "image,caption\n" + "".join(f'{name},"{c}"\n' for name, c in PAIRS),
    "captions_val2017.json": json.dumps(COCO),
}


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_the_script_for_captions_reads_annotations(name, tmp_path):
    (tmp_path / "captions.py").write_text(blocks(CAPTIONING, "python")[0], encoding="utf-8")
    (tmp_path / name).write_text(ANNOTATIONS[name], encoding="utf-8")
    command = [sys.executable, "captions.py", name]
    output = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True).stdout
    rows = [json.loads(line) for line in output.decode("utf-8").splitlines()]
    assert rows == EXPECTED
    (tmp_path / "captioning.yaml").write_text(blocks(CAPTIONING, "yaml")[0], encoding="utf-8")
    features = config.load(tmp_path / "captioning.yaml").features[:2]
    assert CellParser(features)([rows[0]["image"], rows[0]["caption"]])[1] == rows[0]["caption"]
