"""Keys of finished trainings: digests of their data, settings, code and libraries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from regard.components.common.code_digest import code_digest
from regard.components.common.node_code import preprocess_code
from regard.components.data.sources import expand_all
from regard.components.trainer.training_key import (
    library_versions,
    trainer_code,
    training_modules,
    validation_settings,
)
from regard.core.errors import DataError, UserError
from regard.core.files import check_no_special_file, sha256_file
from regard.core.plugins import plugin_modules

if TYPE_CHECKING:
    from regard.pipeline.config import Config

# The key of ``tokenizer.word_list`` among the digests of ``vector_digests``.
WORD_LIST = "words"
# The key of a file of ``tokenizer.model``, or the beginning of the keys of several.
TOKENIZER_MODEL = "tokenizer.model"
# The beginning of the keys of monolingual texts.
MONOLINGUAL = "data.monolingual"


def code_modules(config: Config) -> list[str]:
    """Return the modules of the task, and those of other packages and the user, that are used."""
    plugins = plugin_modules(config.section_json("evaluation"))
    return [*training_modules(config), *plugins, *config.own_modules]


def training_key(
    config: Config, data_digest: str, word_vectors: Mapping[str, str], models: Iterable[str] = ()
) -> str:
    """Return a digest of everything that the trained weights depend on, except a warm start.

    Checkpoints are stored under this key and the digest of the model that the training starts
    from, so that an interrupted training finds its own checkpoints and no others.

    Args:
        config: The configuration.
        data_digest: The digest of the content of the data files.
        word_vectors: The result of ``vector_digests``.
        models: The digests of the models that change the train split.
    """
    settings = config.augmentation and config.augmentation.to_json()
    augmenter = [settings, code_digest("regard.components.augmenter")] if settings else []
    return digest(
        data_digest,
        config.task,
        config.data.key_json(),
        _tokenizer_settings(config),
        config.section_json("model"),
        json.dumps(dict(word_vectors), sort_keys=True),
        config.training.key_json(),
        *validation_settings(config),
        *models,
        *augmenter,
        code_digest("regard.components.corpus_gen"),
        preprocess_code(config.task),
        trainer_code(config),
        code_digest("regard.components.tokenizer_trainer"),
        *library_versions(config.training.backend),
    )


def _tokenizer_settings(config: Config) -> str:
    """Return the section ``tokenizer`` as JSON; models that are given count by their content."""
    tokenizer = config.trained_tokenizer
    if tokenizer is None or tokenizer.model is None:
        return config.tokenizer_json
    return tokenizer.to_json(exclude={"model"})


def rewiring_key(config: Config) -> str:
    """Return a digest of what may connect Regard's nodes otherwise; empty without it.

    It is ``pipeline.extra`` with the nodes that it receives. The modules must be importable.
    """
    if config.pipeline.extra is None:
        return ""
    settings = config.pipeline.model_dump_json(exclude={"folder"})
    return digest(settings, code_digest(*config.own_modules))


def word_files(config: Config) -> dict[str, str]:
    """Return the files of words, word vectors, monolingual texts and tokenizers, by their keys."""
    word_list = config.tokenizer.word_list if config.tokenizer is not None else None
    pretrained = getattr(config.model, "pretrained", None)
    files = {WORD_LIST: word_list} if word_list else {}
    files |= tokenizer_files(config)
    texts = expand_all(config.data.root, config.data.monolingual, MONOLINGUAL)
    files |= {f"{MONOLINGUAL}.{number}": path for number, path in enumerate(texts)}
    return {**files, **(pretrained.files() if pretrained else {})}


def word_file_option(key: str) -> str:
    """Return the option of the configuration that names a file of ``word_files``."""
    if key == WORD_LIST:
        return "tokenizer.word_list"
    if key.startswith(MONOLINGUAL):
        return MONOLINGUAL
    return key if key.startswith(TOKENIZER_MODEL) else f"model.pretrained.{key}"


def tokenizer_files(config: Config) -> dict[str, str]:
    """Return the files of ``tokenizer.model`` by their keys in the configuration."""
    model = config.tokenizer.model if config.tokenizer is not None else None
    if isinstance(model, dict):
        return {f"{TOKENIZER_MODEL}.{feature}": path for feature, path in model.items()}
    return {TOKENIZER_MODEL: model} if model else {}


def vector_digests(config: Config) -> dict[str, str]:
    """Return the digest of each file of ``word_files``, by its key.

    Raises:
        UserError: A file cannot be read, or begins with a vector of another width.
    """
    digests = {}
    for key, path in word_files(config).items():
        # It imports TensorFlow, which most configurations do not need here.
        from regard.components.trainer.pretrained_embeddings import read_vectors

        try:
            digests[key] = sha256_file(path)
            has_vectors = not key.startswith((WORD_LIST, MONOLINGUAL, TOKENIZER_MODEL))
            has_content = not has_vectors or any(read_vectors(path, config.model.embedding))
            reason = None if has_content else "the file is empty"
        except OSError as error:
            reason = error.strerror
        if reason:
            where = config.locate(word_file_option(key))
            message = f"The file {path} cannot be read: {reason}."
            raise UserError(message, where, "Use another file, or null.")
    return digests


def pinned_schema(config: Config) -> str:
    """Return the content of ``data.schema``, after a comment with its name; empty without one.

    Raises:
        UserError: The file cannot be read, or is no schema.
    """
    if (path := config.data.schema) is None:
        return ""
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    remedy = "Copy the schema.pbtxt of a run's SchemaGen, or remove data.schema."
    try:
        check_no_special_file(path)
        text = Path(path).read_text(encoding="utf-8")
        text_format.Parse(text, schema_pb2.Schema())
    except text_format.ParseError as error:
        raise DataError(f"data.schema: {error}", f"{path}:{error.GetLine() or 1}", remedy) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", error)
        message = f"The file {path} cannot be read: {reason}."
        raise UserError(message, config.locate("data.schema"), remedy) from None
    return f"# {Path(path).name}\n{text}"


def digest(*texts: str) -> str:
    """Return a short digest of texts."""
    return hashlib.sha256("\0".join(texts).encode("utf-8")).hexdigest()[:16]
