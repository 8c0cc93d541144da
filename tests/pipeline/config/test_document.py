"""YAML files: limits on hostile text."""

import pytest

from regard.pipeline.config.document import parse


def test_aliases_cannot_multiply_without_limit():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    document = parse("\n".join(lines), {})
    assert document.value is None
    assert "aliases" in document.problems[0].message


@pytest.mark.parametrize("text", ["[" * 5000, "a: " + "[" * 3000 + "]" * 3000])
def test_deep_nesting_is_refused(text):
    document = parse(text, {})
    assert document.value is None
    assert "nested too deeply" in document.problems[0].message


def test_long_text_is_refused():
    assert "at most" in parse("# " + "x" * 300_000, {}).problems[0].message
