"""Reading and writing the state of a schedule."""

import json

import pytest

from regard.components.common.errors import UserError
from regard.pipeline.scheduling.state import (
    FILE,
    Attempt,
    FileGroup,
    ScheduleState,
    TrainedData,
    read_state,
    write_state,
)

DATA = {"key": "k", "groups": [], "spans": {}}
OPEN = {"key": "k", "started": 1.0, "reason": "new", "data": DATA}
ENDED = {"key": "k", "started": 1.0, "reason": "new", "ended": 2.0, "status": "pushed"}


def test_a_state_is_read_as_it_was_written(tmp_path):
    group = FileGroup(files=[("a.tsv", 3, "d1")], rows=7)
    data = TrainedData(key="k", groups=[group], spans={"1": ["d1"]}, run="1")
    attempt = Attempt(key="k", started=1.0, reason="new", data=data, pid=5)
    history = [Attempt(**ENDED)]
    state = ScheduleState(created=1, checked=2, attempt=attempt, trained=data, history=history)
    assert read_state(tmp_path) == ScheduleState()
    write_state(tmp_path, state)
    assert read_state(tmp_path) == state


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
    (tmp_path / FILE).write_text(text)
    with pytest.raises(UserError, match=f"cannot be read: {key}") as caught:
        read_state(tmp_path)
    assert "Remove the file" in caught.value.remedy
