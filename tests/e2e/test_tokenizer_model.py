"""A SentencePiece model of another tool, from the file to the outputs of a published model."""

import json

import pytest
import sentencepiece

from regard.pipeline.config.config import NODES
from tests.components.common.sentencepiece_corpora import train_foreign_model
from tests.e2e.conftest import CONFIG, Shell, write_data

pytestmark = pytest.mark.slow

TOKENIZER = "tokenizer: {{model: {file}, type: bpe}}"


def configure(shell: Shell, file: str) -> None:
    text = CONFIG.format(data=shell.folder / "data", epochs=6)
    text = text.replace(
        "tokenizer: {type: char, vocab_size: 60, vocab_limit: soft}", TOKENIZER.format(file=file)
    )
    text = text.replace("  early_stopping", "  subword_sampling: {alpha: 0.1}\n  early_stopping")
    # Every model is published, whatever it has learned.
    text = text.replace("tokenize: none", "tokenize: none, production: null")
    (shell.folder / "tiny.yaml").write_text(text)


def run(shell: Shell) -> dict[str, str]:
    result = shell.run("run", "tiny.yaml")
    assert result.returncode == 0, result.stdout + result.stderr
    return shell.states()


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A published model with a tokenizer that SentencePiece trained with its default ids."""
    shell = Shell(tmp_path_factory.mktemp("tokenizer"))
    write_data(shell.folder / "data")
    lines = (shell.folder / "data" / "train.tsv").read_text().split()
    model = train_foreign_model(lines, "bpe", vocab_size=90)
    (shell.folder / "opus.model").write_bytes(model)
    configure(shell, "opus.model")
    validated = shell.run("validate", "tiny.yaml")
    assert validated.returncode == 0, validated.stdout + validated.stderr
    assert "opus.model (bpe, normalization nmt_nfkc)" in " ".join(validated.stdout.split())
    assert set(run(shell).values()) == {"done"}
    return shell


def test_the_published_model_writes_with_the_tokens_of_the_file(shell: Shell) -> None:
    words = ["badge", "face", "deaf"]
    result = shell.run("predict", "tiny", text="\n".join(words))
    assert result.returncode == 0, result.stderr
    outputs = result.stdout.splitlines()
    assert len(outputs) == len(words)
    # It writes letters in capitals, since it has learned something of the tokens.
    assert all(output and output.isupper() for output in outputs)
    (folder,) = (shell.home / "pipelines/tiny/artifacts/TokenizerTrainer/tokenizer").iterdir()
    original, stored = (
        sentencepiece.SentencePieceProcessor(model_file=str(path))
        for path in (shell.folder / "opus.model", folder / "source.model")
    )
    assert (original.pad_id(), original.unk_id()) == (-1, 0)
    assert (stored.pad_id(), stored.unk_id(), stored.bos_id(), stored.eos_id()) == (0, 1, 2, 3)
    assert stored.encode(words, out_type=str) == original.encode(words, out_type=str)
    description = json.loads((folder / "tokenizer.json").read_text())
    assert description["features"]["target"]["origin"]["file"] == "opus.model"


def test_finished_work_is_found_by_content(shell: Shell) -> None:
    assert run(shell) == dict.fromkeys(NODES, "cached")
    # Another name, folder and time: only what shows or records the configuration runs again.
    (shell.folder / "models").mkdir()
    (shell.folder / "opus.model").rename(shell.folder / "models" / "renamed.model")
    (shell.folder / "models" / "renamed.model").touch()
    configure(shell, "models/renamed.model")
    states = run(shell)
    again = {node for node in NODES if states[node] != "cached"}
    assert again <= {"Pusher", "Reporter"}


def test_another_content_trains_again(shell: Shell) -> None:
    path = shell.folder / "models" / "renamed.model"
    lines = (shell.folder / "data" / "train.tsv").read_text().split()
    path.write_bytes(train_foreign_model(lines, "bpe", vocab_size=80))
    states = run(shell)
    assert {states[node] for node in ("TokenizerTrainer", "Preprocess", "Trainer")} == {"done"}
    assert states["CorpusGen"] == "cached"
    result = shell.run("predict", "tiny", text="face")
    assert result.returncode == 0, result.stderr
