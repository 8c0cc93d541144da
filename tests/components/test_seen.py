from __future__ import annotations

import pytest

from components import seen
from components.errors import UserError


def test_a_text_is_known_by_its_form():
    assert seen.key(" cafe\u0301\n") == seen.key("caf\u00e9")
    assert seen.key("one\r\ntwo\u2028three  four") == seen.key("one two three four")
    assert seen.key("Yes") != seen.key("yes")
    assert 0 <= seen.key("") < 2**64


def test_what_was_written_is_read(tmp_path):
    keys = [seen.key(text) for text in ("yes", "no")]
    (tmp_path / seen.FILE).write_text(seen.to_json(keys))
    assert seen.read(tmp_path, "") == {seen.key("yes"), seen.key("no")}


def test_nobody_looked(tmp_path):
    assert seen.read(tmp_path, "") is None


@pytest.mark.parametrize("content", ["[1, 2", "{}", '["a"]'])
def test_a_broken_file_is_named_with_the_remedy(tmp_path, content):
    (tmp_path / seen.FILE).write_text(content)
    with pytest.raises(UserError, match="references that train has too") as error:
        seen.read(tmp_path, "Run it again.")
    assert error.value.where == str(tmp_path / seen.FILE)
    assert error.value.remedy == "Run it again."
