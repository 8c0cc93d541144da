"""TokenizerTrainer from examples on disk to an artifact."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from tfx.types import standard_artifacts

from regard.components.common.artifact_types import Tokenizer
from regard.components.tokenizer_trainer.executor import TokenizerTrainerExecutor
from regard.components.tokenizer_trainer.sampling import MAX_BYTES
from regard.core import events
from regard.core.errors import DataError, UserError
from regard.models.tags import user_symbols
from regard.serving.contract import MODEL_FILE, TRAINING
from tests.components.common.sentencepiece_corpora import train_foreign_model
from tests.components.corpora import BEAM, write_records

SETTINGS: dict[str, Any] = {"vocab_size": 60, "vocab_limit": "soft", "input_sentence_size": 1000}
ROWS = [(f"number {i} is here", f"hier ist die Zahl {i}") for i in range(200)]


def run(
    folder: Path,
    rows: list[tuple[str, str]],
    symbols: list[str] | None = None,
    start: dict[str, str] | None = None,
    splits: tuple[str, ...] = ("train",),
    names: tuple[str, str] = ("train", "test"),
    noise: dict[str, Any] | None = None,
    digests: dict[str, str] | None = None,
    **settings: Any,
) -> tuple[Path, Tokenizer]:
    for split, pairs in zip(names, (rows, [("ÖÖÖ", "ÜÜÜ")]), strict=True):
        path = folder / "examples" / f"Split-{split}" / "data_tfrecord-00000-of-00001.gz"
        write_records(path, ({"source": [one], "target": [other]} for one, other in pairs))
    examples, tokenizer = standard_artifacts.Examples(), Tokenizer()
    examples.uri, tokenizer.uri = str(folder / "examples"), str(folder / "tokenizer")
    examples.split_names = json.dumps(names)
    context = TokenizerTrainerExecutor.Context(beam_pipeline_args=BEAM, tmp_dir=str(folder / "tmp"))
    config = json.dumps(settings if "model" in settings else {**SETTINGS, **settings})
    features = json.dumps({"source": symbols or [], "target": []})
    properties = {"config": config, "features": features, "seed": 0, "code": "x"}
    properties |= {"word_list_digest": "", "start": json.dumps(start or {})}
    properties["model_digests"] = json.dumps(digests or {})
    properties["splits"] = json.dumps(splits)
    properties["noise"] = json.dumps({"source": noise} if noise else {})
    properties |= {"published": str(folder / "registry/small")}
    TokenizerTrainerExecutor(context).Do(
        {"examples": [examples]}, {"tokenizer": [tokenizer]}, properties
    )
    return Path(tokenizer.uri), tokenizer


def tokens_of(path: Path) -> list[str]:
    model = sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes())
    return [model.id_to_piece(i) for i in range(model.get_piece_size())]


def test_one_model_per_side_from_train(tmp_path: Path) -> None:
    folder, artifact = run(tmp_path, ROWS)
    source, target = tokens_of(folder / "source.model"), tokens_of(folder / "target.model")
    assert "Z" in "".join(target)
    assert "Z" not in "".join(source)
    assert not set("ÖÜ") & set("".join(source + target))
    description = json.loads((folder / "tokenizer.json").read_text())
    assert description["ids"] == {"pad": 0, "unk": 1, "bos": 2, "eos": 3}
    assert description["features"]["source"] == {
        "file": "source.model",
        "type": "unigram",
        "tokens": len(source),
        "sentences": 200,
        "too_long": 0,
    }
    assert artifact.get_int_custom_property("target_tokens") == len(target)
    vocabulary = (folder / "source.vocab").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in vocabulary] == source
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("shared", [False, True])
def test_tokens_of_changed_texts(tmp_path: Path, shared: bool) -> None:
    options: dict[str, Any] = {"type": "bpe", "shared": shared, "symbols": ["<de>"], "rows": ROWS}
    options["vocab_size"] = 100
    clean, _ = run(tmp_path / "clean", **options)
    noise = {"upper_case": 0.5}
    folder, _ = run(tmp_path / "noisy", **options, noise=noise)
    again, _ = run(tmp_path / "again", **options, noise=noise)
    assert "NUMBER" not in "".join(tokens_of(clean / "source.model"))
    tokens = tokens_of(folder / "source.model")
    assert {"\u2581NUMBER", "\u2581number", "<de>"} <= set(tokens)
    assert tokens_of(again / "source.model") == tokens
    target = tokens_of(folder / "target.model")
    assert (target == tokens) if shared else (target == tokens_of(clean / "target.model"))


def test_other_names_of_splits(tmp_path: Path) -> None:
    names = ("learning", "rest")
    folder, _ = run(tmp_path / "a", ROWS, splits=("learning",), names=names)
    default, _ = run(tmp_path / "b", ROWS)
    for name in ("source.model", "target.model"):
        assert (folder / name).read_bytes() == (default / name).read_bytes()
    both, _ = run(tmp_path / "c", ROWS, splits=names, names=names)
    assert "Ö" in "".join(tokens_of(both / "source.model"))
    with pytest.raises(UserError, match=r"no split 'train'.*learning, rest"):
        run(tmp_path / "d", ROWS, names=names)


def test_shared(tmp_path: Path) -> None:
    folder, _ = run(tmp_path, ROWS, shared=True)
    assert (folder / "source.model").read_bytes() == (folder / "target.model").read_bytes()
    description = json.loads((folder / "tokenizer.json").read_text())
    assert description["shared"] is True
    assert description["features"]["source"]["sentences"] == 400
    assert {"Z", "n"} <= set("".join(tokens_of(folder / "source.model")))


def test_hard_limit_names_both_sides_and_the_key(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tokenizer\.vocab_size: 8000 is more than") as caught:
        run(tmp_path, ROWS, vocab_size=8000, vocab_limit="hard")
    assert "source at most " in caught.value.message
    assert "target at most " in caught.value.message
    assert "tokenizer.vocab_limit to soft" in (caught.value.remedy or "")
    assert not (tmp_path / "tokenizer" / "source.model").exists()


def test_too_small_a_vocabulary(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tokenizer\.vocab_size: 8 is less than the characters"):
        run(tmp_path, ROWS, vocab_size=8)


def test_no_text(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"target: the train split has no text \(2 rows"):
        run(tmp_path, [("a b", ""), ("c", " ")], vocab_size=20)


def test_small_corpus_and_too_long_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    rows = [("a dog", "ein Hund"), ("a cat", "eine Katze"), ("word " * MAX_BYTES, "Wort")]
    folder, _ = run(tmp_path, rows, vocab_size=8000)
    description = json.loads((folder / "tokenizer.json").read_text())["features"]["source"]
    assert (description["sentences"], description["too_long"]) == (2, 1)
    texts = {kind: [] for kind in ("note", "warning", "progress")}
    for event, _ in events.read(log):
        assert event["node"] == "TokenizerTrainer"
        texts[event["kind"]].append(event["text"])
    assert texts["note"][0].startswith(
        f"source: {description['tokens']} tokens from 2 sentences (the"
    )
    assert texts["warning"] == ["source: 1 line of more than 16,384 bytes was skipped"]
    assert "sampling sentences" in texts["progress"]


@pytest.mark.parametrize("shared", [False, True])
def test_symbols_of_a_feature(tmp_path: Path, shared: bool) -> None:
    symbols = user_symbols(["de", "fr"], "unigram")
    folder, _ = run(tmp_path, ROWS, symbols, shared=shared, user_defined_symbols=["<date>"])
    source, target = tokens_of(folder / "source.model"), tokens_of(folder / "target.model")
    assert {*symbols, "<date>"} <= set(source)
    assert set(symbols) & set(target) == (set(symbols) if shared else set())
    assert "<date>" in target


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artifact with shared tokenizers of 40 tokens."""
    root = tmp_path_factory.mktemp("old")
    folder, _ = run(root, ROWS, ["<de>"], vocab_size=40, shared=True)
    return folder


@pytest.fixture
def published(tmp_path: Path, old: Path) -> Path:
    """A folder like that of a published model, with the old tokenizers."""
    version = tmp_path / "registry" / "small" / "1"
    (version / TRAINING).parent.mkdir(parents=True)
    (version / MODEL_FILE).touch()
    names = ("source", "target")
    write_training(
        version, {f"tokenizer/{name}": (old / f"{name}.model").read_bytes() for name in names}
    )
    return version


def write_training(version: Path, entries: dict[str, bytes]) -> None:
    arrays = {name: np.frombuffer(content, np.uint8) for name, content in entries.items()}
    with open(version / TRAINING, "wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


@pytest.mark.parametrize("cluster", [False, True])
def test_tokenizers_of_the_start_are_kept(
    tmp_path: Path, old: Path, published: Path, monkeypatch: pytest.MonkeyPatch, cluster: bool
) -> None:
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    start = {"model": "production"} if cluster else {"model": "small@1", "path": str(published)}
    rows = [("another xylophone", "ÄÖÜ"), ("and a quiz", "ßßß")]
    folder, artifact = run(tmp_path, rows, ["<de>"], start=start, shared=True)
    for name in ("source.model", "target.model", "source.vocab"):
        assert (folder / name).read_bytes() == (old / name).read_bytes()
    assert artifact.get_int_custom_property("source_tokens") == 40
    texts = [event["text"] for event, _ in events.read(log) if event["kind"] == "note"]
    assert texts == [f"{side}: 40 tokens of small@1" for side in ("source", "target")]


def test_without_a_model_in_production_tokenizers_are_trained(tmp_path: Path) -> None:
    folder, _ = run(tmp_path, ROWS, start={"model": "production"})
    assert len(tokens_of(folder / "source.model")) < 60


@pytest.mark.parametrize(
    ("symbols", "settings", "message"),
    [
        (["<fr>"], {}, "its source tokenizer has no token <fr>"),
        ([], {"user_defined_symbols": ["<date>"]}, "has no token <date>"),
        ([], {"type": "bpe"}, "tokenizer.type is bpe here and unigram there"),
    ],
)
def test_tokenizers_that_do_not_suit_the_pipeline(
    tmp_path: Path, published: Path, symbols: list[str], settings: dict[str, Any], message: str
) -> None:
    start = {"model": "small@1", "path": str(published)}
    with pytest.raises(UserError, match=message) as caught:
        run(tmp_path, ROWS, symbols, start=start, **settings)
    assert caught.value.where == "training.warm_start.keep_tokenizer"


@pytest.mark.parametrize("content", [None, b"not an archive", b"", {"tokenizer/source": b"no"}, {}])
def test_unreadable_tokenizers(
    tmp_path: Path, published: Path, content: bytes | dict[str, bytes] | None
) -> None:
    (published / TRAINING).unlink()
    if isinstance(content, dict):
        write_training(published, content)
    elif content is not None:
        (published / TRAINING).write_bytes(content)
    start = {"model": "small@1", "path": str(published)}
    with pytest.raises(UserError, match="small@1: it has no readable tokenizers"):
        run(tmp_path, ROWS, start=start)


def test_tokenizers_of_both_sides_that_differ_are_not_shared(
    tmp_path: Path, published: Path
) -> None:
    folder, _ = run(tmp_path / "sides", ROWS)
    entries = {f"tokenizer/{n}": (folder / f"{n}.model").read_bytes() for n in ("source", "target")}
    write_training(published, entries)
    start = {"model": "small@1", "path": str(published)}
    folder, _ = run(tmp_path, ROWS, start=start)
    assert (folder / "target.model").read_bytes() == entries["tokenizer/target"]
    with pytest.raises(UserError, match="shared is true here and false there"):
        run(tmp_path, ROWS, start=start, shared=True)


def test_kept_tokenizers_have_the_description_of_new_ones(
    tmp_path: Path, old: Path, published: Path
) -> None:
    start = {"model": "small@1", "path": str(published)}
    folder, _ = run(tmp_path, ROWS, start=start, shared=True)
    descriptions = [path / "tokenizer.json" for path in (old, folder)]
    assert descriptions[0].read_bytes() == descriptions[1].read_bytes()


@pytest.fixture
def foreign(tmp_path: Path) -> dict[str, Path]:
    """A model of each side with SentencePiece's own ids."""
    paths = {}
    for name, texts in zip(("source", "target"), zip(*ROWS, strict=True), strict=True):
        paths[name] = tmp_path / f"opus-{name}.model"
        paths[name].write_bytes(train_foreign_model(texts, vocab_size=60))
    return paths


def messages(log: Path, kind: str) -> list[str]:
    return [event["text"] for event, _ in events.read(log) if event["kind"] == kind]


def test_given_models_are_not_trained(
    tmp_path: Path, foreign: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    files = {name: str(path) for name, path in foreign.items()}
    digests = {n: hashlib.sha256(path.read_bytes()).hexdigest() for n, path in foreign.items()}
    rows = [*ROWS[:50], ("another x", "\u00fcber Zahl"), ("", "")]
    folder, artifact = run(tmp_path, rows, ["<de>"], model=files, digests=digests)
    description = json.loads((folder / "tokenizer.json").read_text())
    for name, path in foreign.items():
        tokens = tokens_of(folder / f"{name}.model")
        assert tokens[:4] == ["<pad>", "<unk>", "<s>", "</s>"]
        symbols = ["<de>"] if name == "source" else []
        assert tokens[4:] == tokens_of(path)[3:] + symbols
        assert artifact.get_int_custom_property(f"{name}_tokens") == len(tokens)
        assert description["features"][name] == {
            "file": f"{name}.model",
            "type": "unigram",
            "tokens": len(tokens),
            "sentences": 51,
            "too_long": 0,
            "origin": {"file": f"opus-{name}.model", "sha256": digests[name]},
        }
    assert description["shared"] is False
    source, target = messages(log, "note")
    assert source.startswith(f"source: {len(tokens_of(folder / 'source.model'))} tokens of opus-")
    assert "0.00% of tokens and 0.00% of characters unknown" not in target
    assert messages(log, "warning") == []


def test_one_given_model_is_shared(tmp_path: Path, foreign: dict[str, Path]) -> None:
    folder, _ = run(tmp_path, ROWS, ["<de>"], model=str(foreign["target"]))
    source, target = (folder / f"{name}.model" for name in ("source", "target"))
    assert source.read_bytes() == target.read_bytes()
    assert "<de>" in tokens_of(target)
    assert json.loads((folder / "tokenizer.json").read_text())["shared"] is True


@pytest.mark.parametrize("text", ["\u4f60\u597d", "\u4f60 \u597d", "XYZXYZXYZ"])
def test_a_model_of_another_language_is_an_error(
    tmp_path: Path, foreign: dict[str, Path], text: str
) -> None:
    with pytest.raises(DataError, match=r"target: .* another language") as caught:
        run(tmp_path, [("number 1", text)] * 20, model=str(foreign["source"]))
    assert caught.value.where == "tokenizer.model"
    assert not (tmp_path / "tokenizer" / "source.model").exists()


@pytest.mark.parametrize(("count", "warns"), [(1, False), (30, True)])
def test_unknown_tokens_are_a_warning_above_a_percent(
    tmp_path: Path,
    foreign: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    warns: bool,
) -> None:
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    rows = [*ROWS, *[("number Q", "Zahl 1")] * count]
    run(tmp_path, rows, model={name: str(path) for name, path in foreign.items()})
    assert [text.partition(":")[0] for text in messages(log, "warning")] == ["source"] * warns


def test_many_bytes_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    (path := tmp_path / "bytes.model").write_bytes(
        train_foreign_model(ROWS[0], vocab_size=300, byte_fallback=True)
    )
    folder, _ = run(tmp_path, [("\u4f60\u597d", "hier ist die Zahl 0")] * 9, model=str(path))
    assert "<0x41>" in tokens_of(folder / "source.model")
    (warning,) = messages(log, "warning")
    assert warning.startswith("source: 85.7% of tokens are single bytes")


def test_a_file_that_changes_before_the_node_runs(tmp_path: Path, foreign: dict[str, Path]) -> None:
    digests = dict.fromkeys(foreign, "0" * 64)
    with pytest.raises(DataError, match="has changed since"):
        run(tmp_path, ROWS, model=str(foreign["source"]), digests=digests)
