"""Reads the rows of one split of an Examples artifact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from components.errors import UserError
from components.predictions import Row


def read_rows(split: str, source: str, reference: str) -> list[Row]:
    """Reads ``tf.Example`` records in the order in which they stood in the corpus.

    Beam writes a split in any order; the features ``file`` and ``line`` put it right, so that
    the answers line up with the user's own test file. Without them the order read is kept.

    Args:
        split: the folder of the split, with TFRecord files, ``.gz`` or plain.
        source: the feature to decode.
        reference: the feature with the right answer.
    """
    import tensorflow as tf

    rows = []
    for path in sorted(Path(split).iterdir()):
        if path.name.startswith((".", "_")):
            continue
        compression = "GZIP" if path.suffix == ".gz" else ""
        for record in tf.data.TFRecordDataset(str(path), compression).as_numpy_iterator():
            features = tf.train.Example.FromString(record).features.feature
            missing = {source, reference} - set(features)
            if missing:
                raise UserError(
                    f"the examples have no feature {sorted(missing)[0]!r}"
                    f" (they have: {', '.join(sorted(features))})",
                    where=str(path),
                )
            rows.append(
                Row(
                    source=_text(features[source]),
                    reference=_text(features[reference]),
                    file=_text(features["file"]) if "file" in features else "",
                    line=features["line"].int64_list.value[0] if "line" in features else 0,
                )
            )
    return sorted(rows, key=lambda row: (row.file, row.line))


def _text(feature: Any) -> str:
    values = feature.bytes_list.value
    return values[0].decode("utf-8", errors="replace") if values else ""
