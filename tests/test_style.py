"""Banned identifiers and phrases: the names and texts of the project use standard English terms.

``python tests/test_style.py [FILE or FOLDER ...]`` prints ``file:line: text`` for each violation.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = {".md", ".jinja", ".html", ".js", ".yaml", ".yml"}

# Not names, nor parts of names.
BANNED_PARTS = re.compile("told|asked|wanted|unmoved|settled|mended|lates|anew|rival|refusals")
# Not names when they stand alone, as in `found = ...` or `def _kept()`: mostly past participles.
BANNED_NAMES = re.compile(
    r"""found|kept|seen|held|given|written|restored|made|waited|done|taken|gone|said|shown|drawn
    |named|moved|looked|tried|lost|spared|forced|impossible|stale|enough|moving|worth|walk|spread
    |pick|away|fade|behind|remember|by_piece|let_go|look|pulse|together|team|shares|moments
    |lack|draws|by_row|by_file|late_gradient|drops|fault|ask""",
    re.VERBOSE,
)
# Modules whose names do not say what is inside.
BANNED_MODULES = re.compile(
    r"""words|rows|parts|place|pieces|vectors|watching|questions|asking|holding|pulse|together|team
    |member|shares|kept|moments|found|seen|rival|look|unit|attempts|told""",
    re.VERBOSE,
)
BANNED_PHRASES = re.compile(
    r"""\b(?:
    anew | mend(?:s|ed|ing)? | held\ against | stays\ done | go(?:es)?\ on | going\ on
    | l(?:ay|ies?)\ side\ by\ side | so\ many | (?:is|are|be|was|were|been)\ told | tells?\ of
    | nothing\ of\ it | alike | asked\ with | besides? | such\ an? | at\ the\ least | learnt
    | wants\ to\ know | only\ just\ come | done\ better | an?\ look | the\ looks | of\ a\ look
    | units\ trained\ on | is\ to\ be | are\ to\ be | pieces | who\ asks | what\ one
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)


def files(paths: list[str] | None = None) -> Iterator[Path]:
    """Yield the repository's Python and text files, except this one."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", *(paths or ["."])]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listing.stdout.splitlines():
        path = ROOT / name
        if path.is_symlink() or not path.is_file() or path == Path(__file__).resolve():
            continue
        if path.suffix == ".py" or path.suffix in TEXT:
            yield path


def violations(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each banned name or phrase of a file."""
    if path.suffix != ".py":
        yield from phrases(text, 1)
        return
    if BANNED_MODULES.fullmatch(path.stem.removeprefix("test_").strip("_")):
        yield 1, f"module {path.stem}"
    for line, name in names(ast.parse(text)):
        if is_banned(name):
            yield line, f"name {name}"
    if next(phrases(text, 1), None) is None:
        return  # most files; tokenizing all of them takes long
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        # A string without spaces is an identifier, such as the name of a model's output.
        if token.type in (tokenize.COMMENT, tokenize.STRING) and " " in token.string:
            yield from phrases(token.string, token.start[0])


def phrases(text: str, line: int) -> Iterator[tuple[int, str]]:
    """Yield banned phrases; one may continue on the next line."""
    for match in BANNED_PHRASES.finditer(re.sub(r"\s", " ", text)):
        yield line + text.count("\n", 0, match.start()), f'phrase "{match[0]}"'


def is_banned(name: str) -> bool:
    """Whether an identifier is banned; constants may name states, such as DONE."""
    if name.isupper():
        return False
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")
    if name == "Passage":  # of VocabularyMapping; `passage` is a feature of the task span
        return True
    return bool(BANNED_NAMES.fullmatch(snake)) or any(map(BANNED_PARTS.fullmatch, snake.split("_")))


def names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every name that a module defines, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case ast.arg():
                yield node.lineno, node.arg
            case ast.alias(asname=str(name)):
                yield node.lineno, name


def report(paths: list[str] | None = None) -> list[str]:
    """The violations of files, one line each."""
    return [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in files(paths)
        for line, text in sorted(violations(path, path.read_text(encoding="utf-8")))
    ]


def test_the_repository_uses_standard_names_and_phrases():
    assert report() == []


@pytest.mark.parametrize(
    ("name", "banned"),
    [
        ("told", True),
        ("_found", True),
        ("wanted_by", True),
        ("ByRow", True),
        ("LateGradient", True),
        ("tokens_seen", False),
        ("is_found", False),
        ("maker", False),
    ],
)
def test_names(name, banned):
    assert is_banned(name) == banned


def test_violations_are_found_in_definitions_and_prose():
    source = (
        '''"""Reads it\nanew."""\ndef load(kept, *, held=1):\n    self.told = kept  # goes on\n'''
    )
    assert sorted(violations(Path("pieces.py"), source)) == [
        (1, "module pieces"),
        (2, 'phrase "anew"'),
        (3, "name held"),
        (3, "name kept"),
        (4, "name told"),
        (4, 'phrase "goes on"'),
    ]
    assert list(violations(Path("a.md"), "Fine.\nIt is\ntold.")) == [(2, 'phrase "is told"')]
    assert list(violations(Path("a.py"), "import os\nos.walk('.')\nfound()\n")) == []


if __name__ == "__main__":
    print("\n".join(report(sys.argv[1:])))
