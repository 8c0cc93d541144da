"""What a schedule remembers, and what of it cannot be read."""

import json

import pytest

from components.errors import UserError
from pipeline.scheduling import state

LOOK = {"key": "k", "groups": [], "spans": {}}
OPEN = {"key": "k", "number": 1, "kills": 0, "started": 1.0, "reason": "new", "look": LOOK}
ENDED = {**OPEN, "ended": 2.0, "status": "pushed", "text": "pushed as tiny@1"}


def test_what_is_written_is_read(tmp_path):
    made = state.State(1.0, 2.0, 3.0, OPEN, {**LOOK, "run": "1"}, [ENDED])
    state.write(tmp_path, made)
    assert state.read(tmp_path) == made


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[1]", ""),
        ({"nonsense": 1}, "nonsense"),
        ({"looked": "x"}, "looked"),
        ({"retry_at": True}, "retry_at"),
        ({"looked": 1e300}, "looked is 1e"),
        ('{"since": NaN}', "since is nan"),
        ({"trained": {**LOOK, "groups": [3]}}, r"trained.groups\[0\] is 3"),
        ({"attempt": {"foo": 1}}, "attempt has no key"),
        ({"attempt": {**OPEN, "look": {}}}, "attempt.look has no key"),
        ({"attempt": {**ENDED, "status": None}}, "attempt has no status"),
        ({"trained": {}}, "trained has no key"),
        ({"trained": []}, "trained is"),
        ({"history": 3}, "history"),
        ({"history": [{}]}, r"history\[0\] has no key"),
        ({"history": ["x"]}, r"history\[0\] is 'x'"),
    ],
)
def test_another_shape_is_told(tmp_path, content, told):
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / state.FILE).write_text(text)
    with pytest.raises(UserError, match=told) as caught:
        state.read(tmp_path)
    assert caught.value.message.startswith("what the schedule remembers cannot be read: ")
    assert "Remove the file" in caught.value.remedy
