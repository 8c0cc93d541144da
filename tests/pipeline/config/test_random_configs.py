"""Random settings and damaged files: a configuration, or errors with lines, never a traceback."""

import random
import re
import types
import typing
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import settings
from pydantic import BaseModel

from regard.core.errors import UserError
from regard.models.settings.annotations import models_in
from regard.models.settings.base import Problem
from regard.models.tasks import TASKS
from regard.pipeline.compare.matrix import read_comparison
from regard.pipeline.config import load
from regard.pipeline.config.config import config_class
from regard.pipeline.config.load import is_comparison, read_document, validate_values
from regard.pipeline.workspace import Workspace

ROOT = Path(__file__).parents[3]
THOROUGH = settings.get_current_profile_name() == "thorough"
COUNT = 2000 if THOROUGH else 6  # damaged copies of each file
SETTINGS = 2500 if THOROUGH else 200  # of each task
NUMBERS = (0, 1, 2, 3, 7, 16, 64, 1000, 10**11, -1, 0.0, 0.1, 0.5, 1.0, 1e9)
TEXTS = ("", "a", "bleu", "length", "source", "2026-01-01", "*/5 * * * *", "x=y", "a.tsv", "{SPAN}")
KEYS = ("bleu", "length", "Trainer", "a", "model.embedding")


def draw(annotation: Any, random_: random.Random, depth: int = 0) -> Any:
    """Return a value that an annotation may allow, as YAML gives it."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return draw(parts[0], random_, depth)
    if origin is Literal:
        return random_.choice(parts)
    if models := models_in(annotation):
        if type(None) in parts and random_.random() < 0.2:
            return None
        return draw_section(random_.choice(models), random_, depth + 1)
    if origin in (typing.Union, types.UnionType):
        return draw(random_.choice(parts), random_, depth)
    if origin in (tuple, list):
        return [draw(parts[0], random_, depth) for _ in range(random_.randint(0, 2))]
    if origin is dict:
        count = random_.randint(0, 2)
        return {random_.choice(KEYS): draw(parts[1], random_, depth) for _ in range(count)}
    if annotation is bool:
        return random_.random() < 0.5
    if annotation is int:
        return random_.choice([number for number in NUMBERS if isinstance(number, int)])
    if annotation is float:
        return random_.choice(NUMBERS)
    if annotation is str:
        return random_.choice(TEXTS)
    return random_.choice([None, *NUMBERS, *TEXTS])


def draw_section(model: type[BaseModel], random_: random.Random, depth: int = 0) -> dict:
    """Return some keys of a section, with its type if it is a variant."""
    fields = dict(model.model_fields)
    names = random_.sample(sorted(fields), min(len(fields), random_.randint(0, 3)))
    if "type" in fields:
        names.append("type")
    names += [name for name, field in fields.items() if field.is_required()]
    return {name: draw(fields[name].annotation, random_, depth) for name in dict.fromkeys(names)}


@pytest.mark.parametrize("task", TASKS)
def test_random_settings_are_valid_or_have_problems(task: str) -> None:
    random_ = random.Random(f"settings of {task}")
    valid = 0
    for _ in range(SETTINGS):
        values = draw_section(config_class(task), random_)
        values |= {"name": "x", "task": task}
        values["data"] = {**values.get("data", {}), "train": "a.jsonl"}
        config, problems = validate_values(values)
        assert all(isinstance(problem, Problem) and problem.message for problem in problems)
        assert config is not None or problems
        valid += not problems
    assert valid > SETTINGS / 100


# Also the comparisons, of which a base or a label may be wrong.
FILES = sorted([*ROOT.glob("configs/**/*.yaml"), *ROOT.glob("models/tasks/*/starter.yaml")])
LINE = re.compile(r"^( *)([a-z_]+):( .*)?$")
VALUES = (
    *("3", "-1", "x", "[1]", "{a: b}", "null", "1e99", "!!bool maybe", "'", "[{a: 1}]", "&a [*a]"),
    *("9" * 5000, "1e400", "0x" + "f" * 300, ".nan", "12:30:45", "2026-13-45", "*", "%", "@x", "!"),
    *("!!python/object/apply:os.system [ls]", "!!binary '='", "!!set {a, b}", "!!omap [a: 1]"),
    *("[" * 80 + "]" * 80, "{" * 3000, '"\\U00110000"', '"\\ud800"', '"a\\0b"', '"\\n"', '""'),
    *(
        "{SPAN}",
        '"{SPAN:0}"',
        "${X}",
        "${",
        "/dev/zero",
        "x" * 3000,
        "? a",
        "- x",
        "a: b: c",
        "\u202e",
    ),
)
TEXT_CHANGES = (
    lambda text, n: text[:n],
    lambda text, n: text[:n] + text[n + 7 :],
    lambda text, n: text[:n] + "\0\x07\x85\u2028\ufeff\r\t\"'{}[]:#&*!|>%@`-,?"[n % 26] + text[n:],
    lambda text, n: text.replace("\n", ["\r\n", "\r", "\x85", "\n---\n"][n % 4]),
    lambda text, n: ["%YAML 9.9\n---\n", "--- !!map\n", "...\n", "%TAG ! a\n---\n"][n % 4] + text,
)
BYTE_CHANGES = (
    lambda text, n: text.encode(["utf-16", "utf-32", "utf-8-sig", "cp1252"][n % 4], "replace"),
    lambda text, n: text.encode().replace(b"e", b"\xe9"),
    lambda text, n: (content := text.encode())[:n] + bytes([n % 256]) + content[n + 1 :],
)


def damage(text: str, random_: random.Random) -> bytes:
    """Return a file with one mistake: in a line, or anywhere in its text or bytes."""
    if random_.random() < 0.3:
        change = random_.choice([*TEXT_CHANGES, *BYTE_CHANGES])
        changed = change(text, random_.randrange(len(text)))
        return changed if isinstance(changed, bytes) else changed.encode()
    lines = text.splitlines()
    numbers = [number for number, line in enumerate(lines) if LINE.match(line)]
    number = random_.choice(numbers)
    match = LINE.match(lines[number])
    assert match is not None
    indent, key, value = match[1], match[2], match[3] or ""
    wrong = random_.choice(VALUES)
    changes = {
        "key": [f"{indent}{key[:-1]}:{value}"],
        "any key": [f"{indent}{wrong}:{value}"],
        "type": [f"{indent}{key}: {wrong}"],
        "items": [f"{indent}{key}:", f"{indent}  - {wrong}"],
        "indent": [f" {indent}{key}:{value}"],
        "anchor": [f"{indent}{key}: *missing"],
        "alias": [f"{indent}{key}: &a{value}", f"{indent}other: *a"],
        "merge": [f"{indent}<<: *{key}"],
        "merged": [lines[number], f"{indent}<<: {wrong}"],
        "duplicate": [lines[number], lines[number]],
        "tab": [f"{indent}\t{key}:{value}"],
        "none": [],
    }
    changed_lines = random_.choice(list(changes.values()))
    return "\n".join([*lines[:number], *changed_lines, *lines[number + 1 :], ""]).encode()


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_damaged_files_are_valid_or_have_lines(path: Path, tmp_path: Path) -> None:
    text = path.read_text("utf-8")
    random_ = random.Random(path.name)
    copy = tmp_path / "x.yaml"
    workspace = Workspace(tmp_path)
    wrong = 0
    for _ in range(COUNT):
        copy.write_bytes(damage(text, random_))
        try:
            if is_comparison(read_document(copy, workspace)):
                read_comparison([copy], workspace)
            else:
                load(copy)
        except UserError as error:
            wrong += 1
            message = f"{error.where}: {error.message}" if error.where else error.message
            for line in message.splitlines():
                assert re.match(rf"{re.escape(str(copy))}(:\d+)?: ", line), line
    assert wrong > COUNT / 5
