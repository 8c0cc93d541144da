"""CorpusGen as a TFX component."""

from __future__ import annotations

from tfx.types.standard_artifacts import Examples

from regard.components.common.artifacts import Findings
from regard.components.common.component import Component
from regard.components.corpus_gen.executor import Executor


class CorpusGen(Component):
    """Convert files to tf.Examples in the splits train, eval and test.

    It is not one of TFX's ExampleGens, because open-source Kubeflow Pipelines never runs their
    drivers: the cache key is the fingerprint, which the caller computes.

    Args:
        corpus: JSON of the ``Corpus``, with absolute paths.
        fingerprint: the digest of the files' content; empty if it is computed when the node runs,
            and then only written to the findings.

    Outputs: ``examples`` (standard Examples: the features, ``file`` and ``line``) and
    ``findings`` (``corpus.json``: the fingerprint, rows of each split and span, and what was
    skipped).
    """

    EXECUTOR = Executor
    PARAMETERS = {"corpus": str, "fingerprint": str}
    RUN_SECTIONS = ("data",)
    OUTPUTS = {"examples": Examples, "findings": Findings}
