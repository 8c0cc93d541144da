"""The counts of ``make stats``."""

from benchmarks import stats

SOURCE = '''"""A module.

With a docstring of three lines.
"""

# A comment.
import os  # one


def f():
    """A docstring."""
    return """two
    lines"""


class C:
    "Also a docstring."
    x = 5
'''


def test_code_lines_are_without_blank_lines_comments_and_docstrings():
    assert stats.code_lines(SOURCE) == 6
    assert stats.code_lines("") == 0


def test_counts():
    files = {
        "pipeline/run.py": SOURCE,
        "pipeline/cli/run.py": "a = 1\n" * 41,
        "components/trainer/export.py": "a = 1\n",
        "benchmarks/stats.py": "a = 1\n",
        "tests/test_stats.py": "\n\n",
    }
    assert list(stats.count(files).values()) == [48, 3, 2, 1, 1, 2]


def test_the_repository_is_counted(capsys):
    stats.main()
    assert "code lines" in capsys.readouterr().out
