"""What a record may say, and what is told of one that says something else."""

from __future__ import annotations

import pytest

from components.errors import UserError
from components.registry.records import known_of, read_record


def test_a_version_of_other_hands_has_none(tmp_path):
    assert read_record(tmp_path) == {}
    assert read_record(tmp_path / "gone") == {}


def test_what_nobody_relies_on_is_told_as_it_stands(tmp_path):
    (tmp_path / "regard.json").write_text('{"more": [null], "spans": [{"name": "7", "x": 1}]}')
    assert read_record(tmp_path) == {"more": [None], "spans": [{"name": "7", "x": 1}]}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "not valid JSON: "),
        ("{", "not valid JSON: "),
        ("[" * 100_000, "not valid JSON: "),
        ("[]", "no record: Input should be a valid dictionary"),
        ('{"withdrawn": null}', "no record: withdrawn: "),
        ('{"withdrawn": [{}]}', "no record: withdrawn.0.version: "),
        ('{"withdrawn": ["x"]}', "no record: withdrawn.0: Input should be a valid dictionary"),
        ('{"metrics": null}', "no record: metrics: "),
        ('{"metrics": {"bleu": 3}}', "no record: metrics.bleu: "),
        ('{"spans": null}', "no record: spans: "),
        ('{"spans": [{"name": "7", "rows": 3}]}', "no record: spans.0.rows: "),
        ('{"created": 5}', "no record: created: "),
        ('{"rollback_of": "2"}', "no record: rollback_of: "),
        ('{"warm_start": {"start": null}}', "no record: warm_start.start: "),
    ],
)
def test_what_is_no_record_is_refused_with_its_path(tmp_path, content, told):
    (tmp_path / "regard.json").write_text(content)
    with pytest.raises(UserError) as caught:
        read_record(tmp_path)
    assert caught.value.message.startswith(told)
    assert "instance of" not in caught.value.message
    assert caught.value.where == str(tmp_path / "regard.json")
    assert caught.value.remedy.startswith("Move the file away")
    assert known_of(tmp_path) == {}
