"""Documents are read as the server reads them, and what is meant to break a reader does not."""

import time

import pytest
import yaml

from pipeline.kubeflow.lint.document import documents


def bomb():
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for one, other in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{other}: &{other} [{', '.join(['*' + one] * 9)}]")
    return "\n".join(lines)


REFUSED = {
    "a NUL": ("root: {}\nname: \0", 1, "control characters"),
    "an alias of itself": ("&a [*a]", 1, "inside of what it names"),
    "an alias deeper inside": ("root: {}\nb: &a {x: [*a]}", 2, "inside of what it names"),
    "brackets": ("[" * 3000 + "]" * 3000, 1, "more than 200 values are inside of each other"),
    "so many that the reader would crash": ("- " * 200_000, 1, "more than 200"),
    "aliases that grow": (bomb(), 7, "stand for more than 1,000,000 values"),
    "a key that is there twice": ("root: {}\na:\n  b: 1\n  c: 2\n  b: 3", 5, "'b' is there twice"),
    "twice in JSON": ('{"a": 1,\n"a": 2}', 2, "'a' is there twice"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_document_is_told_at_once(name):
    text, line, message = REFUSED[name]
    began = time.perf_counter()
    (found,) = documents(text)
    assert time.perf_counter() - began < 2
    assert found.fault is not None
    assert message in found.fault.message
    assert found.line(()) == line


def test_the_documents_before_the_fault_are_kept():
    first, second = documents("a: 1\n---\nb: 2\nb: 3\n")
    assert first.value == {"a": 1}
    assert "twice" in second.fault.message


def test_what_has_several_names_keeps_its_first_lines():
    (found,) = documents("a: &x\n  b: 1\nc: *x\n")
    assert found.value == {"a": {"b": 1}, "c": {"b": 1}}
    assert found.line(("a", "b")) == 2
    assert found.line(("c", "b")) == 3  # that of the alias


@pytest.mark.parametrize(
    ("written", "value"), [("12e3", 12e3), ("1E5", 1e5), ("'12e3'", "12e3"), ("2e6f99", "2e6f99")]
)
def test_numbers_are_those_of_yaml_1_2(written, value):
    (found,) = documents(f"a: {written}")
    assert found.value == {"a": value}
    assert type(found.value["a"]) is type(value)


def test_json_may_be_indented_with_tabs():
    (found,) = documents('{\n\t"a": {\n\t\t"b": "c\\td"}\n}')
    assert found.value == {"a": {"b": "c\td"}}
    assert found.line(("a", "b")) == 3
    (found,) = documents("a:\n\t- b")
    assert found.fault is not None


def test_a_large_file_is_read_quickly():
    text = yaml.safe_dump({f"key-{i}": {"a": [1, 2, {"b": "c" * 50}]} for i in range(2000)})
    began = time.process_time()
    documents(text)
    assert time.process_time() - began < 2
