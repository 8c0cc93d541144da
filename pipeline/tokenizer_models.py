"""The files of ``tokenizer.model``: checked before a run, and copied for it.

A run reads copies in folders that SHA-256 names. A changed file does not change a run that has
begun, and a file that has been moved or touched does not change the keys of finished work.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from regard.components.common.sentencepiece_models import symbols_of
from regard.components.settings.tokenizer import feature_symbols
from regard.components.tokenizer_trainer.given_models import (
    GivenModel,
    find_file,
    read_file,
    read_given_model,
)
from regard.core.errors import DataError
from regard.core.files import atomic_path
from regard.pipeline.cache_keys import TOKENIZER_MODEL, tokenizer_files
from regard.pipeline.config import Config


def check_tokenizer_models(config: Config) -> dict[str, GivenModel]:
    """Read the files of ``tokenizer.model``, and return the models by their keys.

    Raises:
        UserError: A file cannot be used.
    """
    tokenizer = config.trained_tokenizer
    files = tokenizer_files(config)
    if tokenizer is None or not files:
        return {}
    features = config.description.text_features
    is_protected = config.data.protect is not None
    symbols = feature_symbols(features, config.data.tag_names, is_protected, tokenizer.type)
    models = {}
    for key, path in files.items():
        names = [name for name, file in tokenizer.model_paths(features).items() if file == path]
        texts = dict.fromkeys(text for name in names for text in symbols[name])
        models[key] = read_given_model(path, tokenizer, tuple(texts), config.locate(key))
        _check_sampling(config, models[key])
    return models


def _check_sampling(config: Config, model: GivenModel) -> None:
    """Check that subword sampling splits no token that must stay whole.

    Raises:
        UserError: It does.
    """
    symbols = symbols_of(model.proto) if model.type == "unigram" else ()
    if config.training.subword_sampling and symbols:
        message = f"{model.name} has user-defined tokens, such as {symbols[0]!r}, which subword "
        where = config.locate("training.subword_sampling")
        remedy = "Remove training.subword_sampling, or use another model."
        raise DataError(f"{message}sampling would split.", where, remedy)


def describe_tokenizer_models(models: Mapping[str, GivenModel]) -> list[str]:
    """Return a sentence on each file of ``tokenizer.model``.

    Args:
        models: The result of ``check_tokenizer_models``.
    """
    return [f"{key}: {model.describe()}" for key, model in models.items()]


def feature_digests(config: Config, digests: Mapping[str, str]) -> dict[str, str]:
    """Return the digest of the file of each text feature.

    Args:
        config: The configuration.
        digests: The result of ``vector_digests``; empty on a cluster.
    """
    result = {}
    for feature in config.description.text_features:
        for key in (TOKENIZER_MODEL, f"{TOKENIZER_MODEL}.{feature}"):
            if key in digests:
                result[feature] = digests[key]
    return result


def store_tokenizer_models(
    config: Config, digests: Mapping[str, str], folder: Path
) -> str | dict[str, str] | None:
    """Copy the files of ``tokenizer.model``, and return the folders of the copies as in this key.

    Args:
        config: The configuration.
        digests: The result of ``vector_digests``.
        folder: The folder of all copies.

    Raises:
        UserError: A file cannot be read, or is changing.
    """
    copies = {
        key: _store(path, digests[key], folder, config.locate(key))
        for key, path in tokenizer_files(config).items()
    }
    if TOKENIZER_MODEL in copies:
        return copies[TOKENIZER_MODEL]
    return {key.removeprefix(f"{TOKENIZER_MODEL}."): path for key, path in copies.items()} or None


def _store(path: str, digest: str, folder: Path, where: str | None) -> str:
    """Copy a file to a folder that its digest names, unless the copy exists."""
    copy = folder / digest
    if _is_whole(copy, digest):
        return str(copy)
    content = read_file(path, where)
    if hashlib.sha256(content).hexdigest() != digest:
        message = f"The file {path} has changed while it was read."
        raise DataError(message, where, "Start the command again when it is complete.")
    for old in copy.iterdir() if copy.is_dir() else ():  # a damaged copy
        old.unlink()
    with atomic_path(copy / os.path.basename(path)) as temporary:
        temporary.write_bytes(content)
    return str(copy)


def _is_whole(copy: Path, digest: str) -> bool:
    """Return whether a folder has only a file of this digest."""
    file = find_file(str(copy))
    if not file.is_file():
        return False
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == digest
