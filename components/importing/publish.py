"""Export of an imported model, its check, and its publication in the registry."""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.components.importing.foreign_model import ForeignModel
from regard.components.registry.publish import WithdrawnModelError, push
from regard.components.registry.records import ImportRecord, VersionRecord, read_record
from regard.components.registry.store import Registry
from regard.components.serving_check.executor import (
    TOLERANCES,
    exported_rows,
    raise_failures,
    run_check,
)
from regard.components.settings.serving import ServingConfig
from regard.components.trainer.export import export_float32, write_warm_start
from regard.core import provenance
from regard.core.errors import UserError
from regard.core.files import sha256_file
from regard.models.tasks.served_model import Row
from regard.models.vocabulary import EOS
from regard.serving.contract import read_contract

# Sources of the reference outputs, and their numbers of tokens.
_ROWS, _TOKENS = 2, (2, 8)
_COMMON_TOKENS = 500  # those with the highest scores are frequent


@dataclass(frozen=True)
class ImportResult:
    """A published model.

    Attributes:
        version: its version.
        is_new: whether the version is new; otherwise the newest version is this same model.
        parameters: the number of its weights.
        checked_rows: the reference outputs that another process has reproduced; 0 if the version
            is not new.
        licence: the licence that the folder states; empty without one.
    """

    version: int
    is_new: bool
    parameters: int
    checked_rows: int
    licence: str


def publish_model(foreign: ForeignModel, registry: Path, name: str) -> ImportResult:
    """Export a model, check it in another process as a model server runs it, and publish it.

    Args:
        foreign: the model.
        registry: the registry's folder.
        name: the name in the registry.

    Raises:
        UserError: the weights do not fit, or the registry cannot be written.
        RuntimeError: the exported model has other outputs than the one in memory.
    """
    record = _record(foreign)
    network, model, tokenizers = foreign.build()
    parameters = model.count_params()
    # Two exports of one model differ in their bytes.
    if (version := _same_import(Registry(registry), name, record)) is not None:
        return ImportResult(version, False, parameters, 0, foreign.licence)
    with tempfile.TemporaryDirectory(prefix="regard-import-") as work:
        exported = Path(work, "model")
        rows = _sample_rows(foreign, tokenizers)
        export_float32(model, network, foreign.config, tokenizers, exported, rows)
        write_warm_start(exported, model, foreign.config, foreign.tokenizers)
        del model
        references = exported_rows(exported, read_contract(exported))
        result = run_check(
            {
                "model": str(exported),
                "servers": list(ServingConfig().tf_serving_versions),
                "rows": references,
                "tolerances": TOLERANCES,
                # The output of a long text may have as many tokens as the model allows, which
                # takes minutes. The limit itself does not depend on the weights.
                "has_long_row": False,
            }
        )
        raise_failures(result)
        try:
            version, _ = push(exported, registry, name, record)
        except WithdrawnModelError as error:
            message = f"Production was rolled back from this model, {name}@{error.version}."
            raise UserError(message, name, "Use another name.") from None
    return ImportResult(version, True, parameters, result["rows"], foreign.licence)


def _same_import(registry: Registry, name: str, record: VersionRecord) -> int | None:
    """Return the newest version of a name if it was imported from the same files by this code.

    Raises:
        UserError: the name is that of models that were not imported.
    """
    newest = registry.latest(name)
    if newest is None:
        return None
    earlier = read_record(registry.path(name, newest))
    if not earlier.imported.format:
        message = f"{name}@{newest} was trained by a pipeline, and servers would load the import."
        raise UserError(message, "--name", "Give the imported model another name.")
    is_same = earlier.imported.files == record.imported.files
    is_same &= (earlier.config, earlier.regard) == (record.config, record.regard)
    return newest if is_same else None


def _sample_rows(foreign: ForeignModel, tokenizers: Mapping[str, Any]) -> Iterator[Row]:
    """Yield sources of common tokens in a random order, with a tag if the model has tags."""
    random = np.random.default_rng(0)
    tags = foreign.config.tags.known if foreign.config.tags else ()
    tokenizer = tokenizers["source"]
    common = np.arange(EOS + 1, min(EOS + 1 + _COMMON_TOKENS, int(tokenizer.vocab_size())))
    for number in range(_ROWS):
        ids = random.choice(common, random.integers(*_TOKENS))
        text = tokenizer.detokenize(ids.astype(np.int32)).numpy().decode("utf-8", "replace")
        if tags:
            text = f"<{tags[number % len(tags)]}> {text}"
        yield {"source_ids": tokenizer.tokenize(text).numpy()}


def _record(foreign: ForeignModel) -> VersionRecord:
    """Return the record of the version: where it comes from, and its configuration."""
    config = foreign.config
    values = config.model_dump(mode="json")
    return VersionRecord(
        blessing=f"Imported from a folder of the format {foreign.kind}.",
        config={key: values[key] for key in ("task", "model", "search", "tags")},
        regard=provenance.code_version(),
        stack=provenance.stack_versions(),
        imported=ImportRecord(
            format=foreign.kind,
            folder=foreign.folder.resolve().name,
            files={name: sha256_file(foreign.folder / name) for name in foreign.files},
            licence=foreign.licence,
        ),
    )
