"""What a training depends on, as digests: the keys by which finished work is found again."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from pathlib import Path
from typing import TYPE_CHECKING

from components.errors import UserError
from components.files import sha256_file, source_digest
from components.trainer import vectors

if TYPE_CHECKING:
    from pipeline.config import Config

LIBRARIES = ("tensorflow", "keras", "tensorflow-text", "sentencepiece")
# What the rows of the splits depend on beside the files' content.
_ROWS = ("format", "columns", "extra", "images", "header", "split", "encoding_errors", "bad_rows")


def corpus_code() -> str:
    """A digest of the code that reads the files and makes the splits."""
    return source_digest(
        "components/corpus_gen",
        "components/normal_form.py",
        "components/parameters.py",
        "models/tasks/features.py",
    )


def tokenizer_code() -> str:
    """A digest of the code that trains tokenizers."""
    return source_digest(
        "components/corpus_gen/text.py", "components/tokenizer_trainer", "models/vocabulary.py"
    )


def preprocess_code(task: str) -> str:
    """A digest of the code that preprocesses for a task."""
    return source_digest(*_task_code(task), "components/preprocess", "models/vocabulary.py")


def trainer_code(task: str) -> str:
    """A digest of the code that trains and exports a task's models."""
    models = Path(__file__).parent.parent / "models"
    names = [path.name for path in models.iterdir() if path.name not in ("tasks", "settings")]
    own = [f"models/{name}" for name in names if not name.startswith(("_", "."))]
    beside = ("components/corpus_gen/text.py", "components/trainer", "serving/saved_model.py")
    return source_digest(*own, *_task_code(task), *beside)


def _task_code(task: str) -> list[str]:
    tasks = Path(__file__).parent.parent / "models" / "tasks"
    return [f"models/tasks/{task}", *(f"models/tasks/{path.name}" for path in tasks.glob("*.py"))]


def training_key(config: Config, content: str, word_vectors: dict[str, str]) -> str:
    """A digest of all that the trained weights depend on: data, settings, code, libraries.

    All but the model that they start from, where there is one. Checkpoints live under the two
    together, so that an interrupted training finds its own and no other.

    Args:
        config: the pipeline's.
        content: the digest of the data.
        word_vectors: what ``vector_files`` gave.
    """
    data, training = (json.loads(config.section_json(name)) for name in ("data", "training"))
    training.pop("checkpoint_seconds")
    return digest(
        content,
        config.task,
        json.dumps([data[key] for key in _ROWS], sort_keys=True),
        config.section_json("tokenizer"),
        config.section_json("model"),
        json.dumps(word_vectors, sort_keys=True),
        json.dumps(training, sort_keys=True),
        *_answered_by(config),
        corpus_code(),
        preprocess_code(config.task),
        trainer_code(config.task),
        tokenizer_code(),
        *(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES),
    )


def _answered_by(config: Config) -> list[str]:
    """What decides about the weights beside, where they are judged by the model's answers."""
    stop = config.training.early_stop
    if stop is None or stop.metric == "loss":
        return []
    search = json.loads(config.section_json("search")) or {}
    limits = {name: value for name, value in search.items() if name.startswith("max_length")}
    scorer = importlib.metadata.version("sacrebleu")
    return [json.dumps(limits, sort_keys=True), f"sacrebleu {scorer}"]


def vector_files(config: Config) -> dict[str, str]:
    """The content of each file of word vectors, as a digest.

    Raises:
        UserError: a file cannot be read, or begins with a vector of another depth.
    """
    pretrained = getattr(config.model, "pretrained", None)
    found = {}
    if config.tokenizer is not None and config.tokenizer.words is not None:
        try:
            found["words"] = sha256_file(config.tokenizer.words)
        except OSError as error:
            raise UserError(
                f"the words cannot be read: {error.strerror}",
                where=config.tokenizer.words,
                remedy="Give another file as tokenizer.words, or null.",
            ) from error
    for key, path in (pretrained.files() if pretrained else {}).items():
        try:
            found[key] = sha256_file(path)
            reason = "" if any(vectors.read(path, config.model.embedding)) else "there are none"
        except OSError as error:
            reason = str(error.strerror)
        if reason:
            raise UserError(
                f"the word vectors cannot be read: {reason}",
                where=path,
                remedy=f"Give another file as model.pretrained.{key}, or null.",
            )
    return found


def digest(*parts: str) -> str:
    """A short digest of texts."""
    return hashlib.sha256("\0".join(parts).encode("utf-8")).hexdigest()[:16]
