"""``regard predict``: its options and errors."""

import pytest

from regard.core.errors import UserError
from regard.pipeline.cli import predict
from regard.pipeline.workspace import Workspace


@pytest.mark.parametrize(
    ("options", "message", "expected"),
    [
        ({"n_best": 4}, "search.n_best: 4 is too many", "--n-best 4: 4 is too many"),
        ({"search": "x"}, "search.type: 'x' is not a choice", "--search x: 'x' is not a choice"),
        (
            {"top_p": 0.5},
            "search.top_p: unknown key for this type; it goes with type: sampling",
            "--top-p 0.5: it needs --search sampling",
        ),
        ({"max_length": 0}, "search.max_length_offset: no", "--max-length 0: no"),
        ({"beam_size": 5}, "a\nsearch.beam_size: no", "a\n--beam-size 5: no"),
        ({"beam_size": 5}, "search.length_penalty: no", "search.length_penalty: no"),
    ],
)
def test_errors_name_options(monkeypatch, tmp_path, options, message, expected):
    def fail(*args):
        raise UserError(message, remedy="Change the options of the search.")

    monkeypatch.setattr(predict.prediction, "predict", fail)
    monkeypatch.setattr(Workspace, "from_environment", lambda: Workspace(tmp_path))
    with pytest.raises(UserError) as caught:
        predict.predict("model", ["a"], **options)
    assert caught.value.message == expected
    assert caught.value.remedy == "Change the options of the search."
