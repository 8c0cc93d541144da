import pytest

from regard.core.errors import UserError
from regard.pipeline.prediction.constraints import OutputConstraints, read_glossary

CONTRACT = {"inputs": [{"name": "source", "kind": "text"}]}


def _phrases(source, **options):
    return OutputConstraints(**options).inputs({"source": source}, CONTRACT)["phrases"]


def test_terms_are_whole_words_in_any_case():
    glossary = {"dog": "Hund", "a dog house": "Hundehütte", "c++": "C++", "Straße": "road"}
    assert _phrases("The DOG barks.", glossary=glossary) == "Hund"
    assert _phrases("dogs and hotdog", glossary=glossary) == ""
    assert _phrases("A dog house for a dog", glossary=glossary) == "Hundehütte\nHund"
    assert _phrases("I like C++.", glossary=glossary) == "C++"
    assert _phrases("dog dog dog", glossary=glossary) == "Hund"


def test_terms_of_scripts_without_spaces_and_of_letters_with_many_cases():
    glossary = {"北京": "Beijing", "gpu": "GPU", "ki": "who", "straße": "road"}
    assert _phrases("我在北京用GPU训练。", glossary=glossary) == "Beijing\nGPU"
    assert _phrases("gpus和北京", glossary=glossary) == "Beijing"
    assert _phrases("Kı K\u0131 \u212ai STRASSE", glossary=glossary) == "who\nroad"


def test_phrases_come_before_terms_once():
    constraints = {"phrases": ["Hund", "x y"], "glossary": {"dog": "Hund", "cat": "Katze"}}
    assert _phrases("dog cat", **constraints) == "Hund\nx y\nKatze"


def test_no_constraints_are_false():
    assert not OutputConstraints()
    assert OutputConstraints(prefix="a")
    assert OutputConstraints(glossary={"a": "b"})


def test_a_glossary_file(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("\ufeffdog\tHund\r\n\n  cat \t Katze\n", encoding="utf-8")
    assert read_glossary(path) == {"dog": "Hund", "cat": "Katze"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"dog\tHund\ncat", "terms.tsv:2"),
        (b"dog\t", "terms.tsv:1"),
        (b"a\tb\tc", "terms.tsv:1"),
        (b"dog\t\xff", "not UTF-8"),
    ],
)
def test_a_broken_glossary(tmp_path, content, message):
    path = tmp_path / "terms.tsv"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_glossary(path)
    assert message in f"{caught.value.where}: {caught.value.message}"


def test_a_missing_glossary(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        read_glossary(tmp_path / "none.tsv")
