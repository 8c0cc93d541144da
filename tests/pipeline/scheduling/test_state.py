"""Reading and writing the state of a schedule."""

import json

import pytest

from regard.core.errors import UserError
from regard.pipeline.scheduling import state

DATA = {"key": "k", "groups": [], "spans": {}}
OPEN = {"key": "k", "started": 1.0, "reason": "new", "data": DATA}
ENDED = {"key": "k", "started": 1.0, "reason": "new", "ended": 2.0, "status": "pushed"}


def test_a_state_is_read_as_it_was_written(tmp_path):
    group = state.TrainingFiles(files=[("a.tsv", 3, "d1")], rows=7)
    data = state.TrainedData(key="k", groups=[group], spans={"1": ["d1"]}, run="1")
    attempt = state.Attempt(key="k", started=1.0, reason="new", data=data, pid=5)
    content = state.ScheduleState(
        created=1, checked=2, attempt=attempt, trained=data, history=[state.Attempt(**ENDED)]
    )
    assert state.read_state(tmp_path) == state.ScheduleState()
    state.write_state(tmp_path, content)
    assert state.read_state(tmp_path) == content


@pytest.mark.parametrize(
    ("content", "key"),
    [
        ("[1]", ""),
        ("[", ""),
        ({"nonsense": 1}, "nonsense"),
        ({"checked": "x"}, "checked"),
        ({"retry_at": True}, "retry_at"),
        ({"checked": 1e300}, "checked"),
        ('{"created": NaN}', "created"),
        ({"trained": {**DATA, "groups": [3]}}, "trained.groups.0"),
        ({"attempt": {"foo": 1}}, "attempt"),
        ({"attempt": {**OPEN, "data": {}}}, "attempt.data.key"),
        ({"attempt": {**OPEN, "data": None}}, "attempt"),
        ({"attempt": {**ENDED, "status": ""}}, "attempt"),
        ({"history": 3}, "history"),
        ({"history": [{}]}, "history.0"),
    ],
)
def test_an_invalid_state_is_refused(tmp_path, content, key):
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / state.FILE).write_text(text)
    with pytest.raises(UserError, match=f"cannot be read: {key}") as caught:
        state.read_state(tmp_path)
    assert "Remove the file" in caught.value.remedy
