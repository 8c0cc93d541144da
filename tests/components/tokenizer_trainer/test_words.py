"""The words of files: of words alone, and of word vectors with and without a first line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from components.errors import UserError
from components.tokenizer_trainer.words import words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cat\ndog\nzebra\n", ["cat", "dog", "zebra"]),
        ("cat 0.1 0.2\ndog 1 2\n", ["cat", "dog"]),
        ("2 3\ncat 1 2 3\ndog 4 5 6\n", ["cat", "dog"]),  # word2vec's
        ("42\n43\n", ["42", "43"]),
        ("cat dog\nzebra\n", ["cat", "zebra"]),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_the_first_word_of_each_line(
    text: str, words: list[str], packed: bool, tmp_path: Path
) -> None:
    path = tmp_path / ("words.txt.gz" if packed else "words.txt")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert list(words_of(str(path))) == words


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_bytes(b"")
    with pytest.raises(UserError, match="empty"):
        list(words_of(str(tmp_path / "words.txt")))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        list(words_of(str(tmp_path / "none.txt")))
    assert "none.txt" in str(caught.value.where)
