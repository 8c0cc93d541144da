"""CorpusGen's driver: the content of the data becomes a part of the cache key.

TFX's local runners and its InteractiveContext call it before they look up the cache. Open-source
Kubeflow Pipelines calls no drivers of components; there, the pipelines of Regard use no cache, and
the executor reads the data.
"""

from typing import Any

from tfx.dsl.components.base import base_driver as interactive_driver
from tfx.orchestration.portable import base_driver
from tfx.orchestration.portable.data_types import ExecutionInfo
from tfx.proto.orchestration import driver_output_pb2

from regard.components.corpus_gen.executor import read_corpus
from regard.components.data.fingerprints import fingerprint
from regard.components.data.spans import resolve_spans


class FingerprintDriver(interactive_driver.BaseDriver, base_driver.BaseDriver):
    """Computes the parameter ``fingerprint`` when the node runs."""

    def run(self, execution_info: ExecutionInfo) -> driver_output_pb2.DriverOutput:
        """Return the digest of the data's content, for runners of pipelines.

        Raises:
            UserError: a file is missing.
        """
        output = driver_output_pb2.DriverOutput()
        digest = _fingerprint(execution_info.exec_properties)
        output.exec_properties["fingerprint"].string_value = digest
        return output

    def resolve_exec_properties(
        self, exec_properties: dict[str, Any], *context: Any, **more_context: Any
    ) -> dict[str, Any]:
        """Return the properties with the digest of the data's content, for the InteractiveContext.

        Raises:
            UserError: a file is missing.
        """
        return {**exec_properties, "fingerprint": _fingerprint(exec_properties)}


def _fingerprint(exec_properties: dict[str, Any]) -> str:
    return fingerprint(resolve_spans(read_corpus(exec_properties)))
