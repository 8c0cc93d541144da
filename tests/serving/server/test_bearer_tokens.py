import pytest

from regard.core.errors import NotFoundError, UserError
from regard.serving.server.bearer_tokens import BearerTokens, read_tokens
from regard.serving.server.file_watch import FileWatch
from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import ManagerOptions


def test_the_tokens_of_a_file(tmp_path):
    file = tmp_path / "tokens"
    file.write_bytes(b"first\r\n\n  second \t\nthird")
    assert read_tokens(file) == ("first", "second", "third")
    tokens = BearerTokens(file)
    assert [tokens.contains(text) for text in ("first", "second", "third")] == [True] * 3
    for text in ("", "firs", "first\r", "first\n", "secon", "fürst", "first\nsecond"):
        assert not tokens.contains(text), text
    assert "first" not in repr(tokens)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no token"),
        (b" \r\n\n", "no token"),
        (b"a\nb\x00c", "control character"),
        (b"a\nb\x0bc", "control character"),
        (b"a\nof Ann", "space"),
        (b"#\na", "begins with #"),
        (b"# of Ann\na", "begins with #"),
        ("b\u00e4r".encode(), "not ASCII"),
        (b"\xef\xbb\xbfsecret", "not ASCII"),
        (b"a" * 16_385, "more than 16,384 bytes"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, content, message):
    file = tmp_path / "tokens"
    file.write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        BearerTokens(file)
    assert caught.value.where == str(file)
    assert caught.value.remedy


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(NotFoundError):
        BearerTokens(tmp_path / "tokens")
    with pytest.raises(UserError, match="folder"):
        BearerTokens(tmp_path)


def get_statuses(running, tokens) -> list[int]:
    """Return the statuses of a prediction over REST with each of the tokens."""
    body = {"instances": ["ab"]}
    headers = [{"authorization": f"Bearer {token}"} for token in tokens]
    path = "/v1/models/reverser:predict"
    return [running.rest.post(path, json=body, headers=each).status_code for each in headers]


def test_tokens_are_replaced_while_the_server_runs(run, saved, tmp_path):
    file = tmp_path / "tokens"
    file.write_text("old\n")
    models = [ModelConfig("reverser", saved / "reverser")]
    running = run(models, ManagerOptions(poll_seconds=0), token_file=file)
    (watch,) = running.server._watches
    names = ("old", "new")
    assert get_statuses(running, names) == [200, 401]
    file.write_text("old\nnew\n")
    watch.check()
    assert get_statuses(running, names) == [200, 401], "it may still be written"
    watch.check()
    assert get_statuses(running, names) == [200, 200]
    file.write_text("new\n")
    for _ in range(2):
        watch.check()
    assert get_statuses(running, names) == [401, 200]
    file.write_text("")
    for _ in range(3):
        watch.check()
    assert get_statuses(running, names) == [401, 200], "an empty file cannot be used"


def test_the_server_watches_the_file(run, saved, tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(FileWatch, "start", lambda watch: started.append(watch))
    (tmp_path / "tokens").write_text("secret")
    models = [ModelConfig("reverser", saved / "reverser")]
    options = ManagerOptions(poll_seconds=0)
    server = run(models, options, token_file=tmp_path / "tokens").server
    assert started == server._watches
    assert len(started) == 1
