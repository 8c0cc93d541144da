import pytest

from regard.components.data.target_overlap import (
    OVERLAP_FILE,
    overlap_to_json,
    read_overlap,
    text_hash,
)
from regard.core.errors import UserError


def test_hash_ignores_white_space_and_unicode_form():
    assert text_hash(" cafe\u0301\n") == text_hash("caf\u00e9")
    assert text_hash("one\r\ntwo\u2028three  four") == text_hash("one two three four")
    assert text_hash("Yes") != text_hash("yes")
    assert 0 <= text_hash("") < 2**64


def test_file(tmp_path):
    assert read_overlap(tmp_path, "") is None
    hashes = [text_hash(text) for text in ("yes", "no")]
    (tmp_path / OVERLAP_FILE).write_text(overlap_to_json(hashes))
    assert read_overlap(tmp_path, "") == {*hashes}


@pytest.mark.parametrize("content", ["[1, 2", "{}", '["a"]'])
def test_broken_file(tmp_path, content):
    (tmp_path / OVERLAP_FILE).write_text(content)
    with pytest.raises(UserError, match="the target overlap cannot be read") as error:
        read_overlap(tmp_path, "Run it again.")
    assert error.value.where == str(tmp_path / OVERLAP_FILE)
    assert error.value.remedy == "Run it again."
