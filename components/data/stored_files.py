"""Local copies of a corpus's files that are in object storage."""

import glob
import os
import re
from dataclasses import replace

from regard.components.data import span_patterns
from regard.components.data.sources import Corpus
from regard.components.data.span_rules import path_locations
from regard.components.settings.data import Files
from regard.core.errors import EnvironmentFault, NotFoundError, UserError
from regard.core.storage import ObjectStore, is_copy, is_uri, local_copy

_IMAGES, _MARKER = "data.images", "data.spans.marker"


def with_local_files(corpus: Corpus) -> Corpus:
    """Copy the objects that the paths of a corpus match, and return the corpus with the copies.

    Copies of objects that match no more are removed. A corpus without URIs is returned as it is.

    Raises:
        UserError: a path matches no object, or the store cannot be used.
    """
    config, updates = corpus.config, {}
    paths = [(location.key, location.pattern) for location in path_locations(config)]
    if any(feature.kind.names_file for feature in corpus.features):
        paths.append((_IMAGES, config.images or ""))
    for key, path in paths:
        if is_uri(uri := path if is_uri(path) else os.path.join(config.root, path)):
            _copy(uri, key)
            if config.spans.marker and span_patterns.is_pattern(uri):
                _copy(os.path.join(os.path.dirname(uri), config.spans.marker), _MARKER)
    splits = config.files_by_split()
    for split, files in splits.items():
        if (local := _local(files)) != files:
            updates[split] = local
    if updates and all(
        isinstance(updates.get(split, files), dict) for split, files in splits.items()
    ):
        # The endings of the files, which are given by now.
        updates["columns"] = type(config).model_fields["columns"].default
    if is_uri(config.root):
        updates["root"] = str(local_copy(config.root))
    return replace(corpus, config=config.model_copy(update=updates)) if updates else corpus


def _local(files: Files) -> Files:
    if isinstance(files, dict):
        return {side: _local(paths) for side, paths in files.items()}  # type: ignore[misc]
    if isinstance(files, str):
        return str(local_copy(files)) if is_uri(files) else files
    return [_local(path) for path in files]  # type: ignore[misc]


def _copy(uri: str, key: str) -> None:
    """Make the local copy of a file, a folder or a pattern current."""
    parts = uri.rstrip("/").split("/")
    is_magic = [glob.has_magic(part) or span_patterns.is_pattern(part) for part in parts]
    is_pattern = any(is_magic)
    base = "/".join(parts[: is_magic.index(True)] if is_pattern else parts)
    # An object with a date such as 2026-1-29 is copied, so that it is refused instead of left out.
    name_pattern = uri.removeprefix(base).strip("/")
    expression = span_patterns.to_expression(name_pattern, fixed_dates=False)
    matching = re.compile(expression if is_pattern else ".*", re.DOTALL)
    store, folder = ObjectStore(base, key), local_copy(base)
    objects = {name: state for name, state in store.find().items() if matching.fullmatch(name)}
    if not is_pattern and objects and not {"", "state.json"} & objects.keys() and key != _IMAGES:
        remedy = "Name its files, for example `folder/*.tsv`, or a split in it."
        raise UserError(f"{uri} is a folder", key, remedy)
    if not objects and key != _MARKER:
        raise NotFoundError(f"No object matches {uri}", key, "Check the path and the bucket.")
    store.download(objects, folder)
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        # Hidden files are temporary, or the lock and the source of a registry in the folder.
        is_hidden = "/." in f"/{name}"
        if matching.fullmatch(name) and name not in objects and path.is_file() and not is_hidden:
            if not is_copy(path):
                message = f"{path} is no copy of an object, but would be read as one of {uri}."
                remedy = "Move the file out of that folder, or remove it."
                raise EnvironmentFault(message, key, remedy)
            path.unlink(missing_ok=True)
