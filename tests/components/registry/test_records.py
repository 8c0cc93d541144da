"""Valid and invalid records of versions."""

import pytest

from regard.components.registry.records import VersionRecord, read_record, read_record_or_empty
from regard.core.errors import UserError


def test_a_version_without_a_record_has_an_empty_one(tmp_path):
    assert read_record(tmp_path) == VersionRecord()
    assert read_record(tmp_path / "gone") == VersionRecord()


def test_unknown_keys_are_kept(tmp_path):
    (tmp_path / "regard.json").write_text('{"more": [null], "spans": [{"name": "7", "x": 1}]}')
    assert read_record(tmp_path).to_dict() == {"more": [None], "spans": [{"name": "7", "x": 1}]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not a valid record: Invalid JSON: "),
        ("{", "not a valid record: Invalid JSON: "),
        ("[" * 100_000, "not a valid record: Invalid JSON: "),
        ("[]", "not a valid record: Input should be an object"),
        ('{"withdrawn": null}', "not a valid record: withdrawn: "),
        ('{"withdrawn": [{}]}', "not a valid record: withdrawn.0.version: "),
        (
            '{"withdrawn": ["x"]}',
            "not a valid record: withdrawn.0: Input should be an object",
        ),
        ('{"metrics": null}', "not a valid record: metrics: "),
        ('{"metrics": {"bleu": 3}}', "not a valid record: metrics.bleu: "),
        ('{"spans": null}', "not a valid record: spans: "),
        ('{"spans": [{"name": "7", "rows": 3}]}', "not a valid record: spans.0.rows: "),
        ('{"created": 5}', "not a valid record: created: "),
        ('{"rollback_of": "2"}', "not a valid record: rollback_of: "),
        ('{"warm_start": {"start": null}}', "not a valid record: warm_start.start: "),
    ],
)
def test_an_invalid_record_is_an_error_with_its_path(tmp_path, content, message):
    (tmp_path / "regard.json").write_text(content)
    with pytest.raises(UserError) as caught:
        read_record(tmp_path)
    assert caught.value.message.startswith(message)
    assert caught.value.where == str(tmp_path / "regard.json")
    assert caught.value.remedy.startswith("Move the file out")
    assert read_record_or_empty(tmp_path) == VersionRecord()
