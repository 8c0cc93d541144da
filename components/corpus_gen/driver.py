"""CorpusGen's driver: the content of the data becomes a part of the cache key.

TFX's local runners call it before they look up the cache. Open-source Kubeflow Pipelines calls no
drivers of components; there, the pipelines of Regard use no cache, and the executor reads the data.
"""

from tfx.orchestration.portable import base_driver
from tfx.orchestration.portable.data_types import ExecutionInfo
from tfx.proto.orchestration import driver_output_pb2

from regard.components.corpus_gen.executor import read_corpus
from regard.components.data.fingerprints import fingerprint
from regard.components.data.spans import resolve_spans


class FingerprintDriver(base_driver.BaseDriver):
    """Computes the parameter ``fingerprint`` when the node runs."""

    def run(self, execution_info: ExecutionInfo) -> driver_output_pb2.DriverOutput:
        """Return the digest of the data's content.

        Raises:
            UserError: a file is missing.
        """
        corpus = resolve_spans(read_corpus(execution_info.exec_properties))
        output = driver_output_pb2.DriverOutput()
        output.exec_properties["fingerprint"].string_value = fingerprint(corpus)
        return output
