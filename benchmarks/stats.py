"""Count code lines, modules and test lines of the repository (``make stats``).

A code line holds code: no blank line, no comment, no docstring.
"""

from __future__ import annotations

import ast
import io
import subprocess
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("pipeline", "components", "models", "serving", "core")
SMALL = 40
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """The number of lines of a Python source that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - _docstring_lines(ast.parse(source)))


def _docstring_lines(tree: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case (
                ast.Module(body=[first, *_])
                | ast.ClassDef(body=[first, *_])
                | ast.FunctionDef(body=[first, *_])
                | ast.AsyncFunctionDef(body=[first, *_])
            ):
                match first:
                    case ast.Expr(value=ast.Constant(value=str())):
                        lines.update(range(first.lineno, (first.end_lineno or 0) + 1))
    return lines


def count(files: dict[str, str]) -> dict[str, int]:
    """The counts of a repository, by description.

    Args:
        files: The source of each Python file, by its path relative to the root.
    """
    product = {path: text for path, text in files.items() if path.split("/")[0] in PACKAGES}

    def modules_in(folder: str) -> int:
        return sum(path.rpartition("/")[0] == folder for path in product)

    return {
        "code lines": sum(map(code_lines, product.values())),
        "modules": len(product),
        f"modules of at most {SMALL} lines": sum(
            len(text.splitlines()) <= SMALL for text in product.values()
        ),
        "modules in pipeline/": modules_in("pipeline"),
        "modules in components/trainer/": modules_in("components/trainer"),
        "test lines": sum(
            len(text.splitlines()) for path, text in files.items() if path.startswith("tests/")
        ),
    }


def main() -> None:
    """Print the counts of the files that git tracks."""
    command = ["git", "ls-files", "*.py"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    paths = listing.stdout.splitlines()
    files = {path: (ROOT / path).read_text("utf-8") for path in paths if (ROOT / path).is_file()}
    for description, number in count(files).items():
        print(f"{number:>8,}  {description}")


if __name__ == "__main__":
    main()
