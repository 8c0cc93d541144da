"""The operations that a released TensorFlow Serving can run, by version.

A model server links TensorFlow's own operations and those of one old release of TensorFlow
Text, and nothing else; a model with any other operation fails to load there. Server 2.x is
built with TensorFlow 2.x. The lists of TensorFlow Text are from the servers' sources:
``model_servers/BUILD`` names what is linked, ``workspace.bzl`` which release of TensorFlow Text
(server 2.6.2: 2.5.0; 2.14 to 2.19: 2.12.1; 2.20: 2.20.0).

Imports nothing of ours, so that it also works in a process that has only TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

# fmt: off
# TensorFlow Text 2.5.0.
_TEXT_2_5 = frozenset({
    "CaseFoldUTF8", "ConstrainedSequence", "FindSourceOffsets", "MaxSpanningTree", "NormalizeUTF8",
    "NormalizeUTF8WithOffsetsMap", "RegexSplitWithOffsets", "RougeL", "SentenceFragments",
    "SentenceFragmentsV2", "SentencepieceDetokenizeOp", "SentencepieceIdToStringOp",
    "SentencepieceOp", "SentencepieceStringToIdOp", "SentencepieceTokenizeOp",
    "SentencepieceTokenizeWithOffsetsOp", "SentencepieceVocabSizeOp",
    "SplitMergeTokenizeWithOffsets", "TokenizerFromLogits", "UnicodeScriptTokenizeWithOffsets",
    "WhitespaceTokenizeWithOffsets", "WordpieceTokenizeWithOffsets",
})

# TensorFlow Text 2.12.1 has these besides.
_TEXT_2_12 = _TEXT_2_5 | frozenset({
    "FastBertNormalize", "FastWordpieceTokenizeWithOffsets", "PhraseTokenize",
    "TFText>BoiseTagsToOffsets", "TFText>ByteSplitByOffsets", "TFText>ByteSplitWithOffsets",
    "TFText>FastSentencepieceDetokenize", "TFText>FastSentencepieceTokenize",
    "TFText>FastWordpieceDetokenize", "TFText>NgramsStringJoin", "TFText>OffsetsToBoiseTags",
    "TFText>PhraseDetokenize", "TFText>RoundRobinGenerateMasks", "TFText>RoundRobinTrim",
    "TFText>WhitespaceTokenizeWithOffsetsV2",
})

# TensorFlow Text 2.20.0 has one more.
_TEXT_2_20 = _TEXT_2_12 | {"TFText>Utf8Binarize"}

# TensorFlow's own operations that came after 2.6, under the first of the releases 2.11, 2.14,
# 2.17, 2.19, 2.20 and 2.21 that has them: from the `gen_*.py` files of the tensorflow-cpu wheels.
_CORE_ADDED: Mapping[int, frozenset[str]] = MappingProxyType({
    11: frozenset({
        "AnonymousHashTable", "AnonymousIteratorV3", "AnonymousMultiDeviceIteratorV3",
        "AnonymousMutableDenseHashTable", "AnonymousMutableHashTable",
        "AnonymousMutableHashTableOfTensors", "ApproxTopK", "AssertPrevDataset",
        "AssignVariableXlaConcatND", "CheckPreemption", "CollectiveAllToAllV3",
        "CollectiveAssignGroupV2", "CollectiveInitializeCommunicator", "CollectiveReduceV3",
        "ConfigureAndInitializeGlobalTPU", "CopyToMesh", "DTensorRestoreV2",
        "DTensorSetGlobalTPUArray", "DataServiceDatasetV3", "DataServiceDatasetV4",
        "DeleteRpcFutureResource", "DisableCopyOnRead",
        "DynamicEnqueueTPUEmbeddingArbitraryTensorBatch",
        "EnqueueTPUEmbeddingArbitraryTensorBatch", "FileSystemSetConfiguration",
        "GetElementAtIndex", "IsTPUEmbeddingInitialized", "ListDataset",
        "LoadTPUEmbeddingAdagradMomentumParameters", "ParallelFilterDataset", "RandomIndexShuffle",
        "ReadVariableXlaSplitND", "RegisterDatasetV2", "Relayout",
        "RetrieveTPUEmbeddingAdagradMomentumParameters", "RewriteDataset", "RpcCall",
        "RpcCheckStatus", "RpcClient", "RpcGetValue", "RpcServer", "RpcServerRegister",
        "RpcServerStart", "SaveDatasetV2", "ShutdownTPUSystem", "StatelessShuffle",
        "TPUPartitionedInput", "TPUPartitionedOutput", "UniformDequantize", "UniformQuantize",
        "UniformQuantizedClipByValue", "UniformQuantizedDot", "UniformQuantizedDotHybrid",
        "UniformRequantize", "WindowOp", "XlaAllReduce", "XlaCallModule", "XlaConcatND",
        "XlaCustomCall", "XlaCustomCallV2", "XlaOptimizationBarrier", "XlaReducePrecision",
        "XlaReduceScatter", "XlaRngBitGenerator", "XlaSplitND", "XlaVariadicReduceV2",
    }),
    14: frozenset({
        "CollectiveAllToAllV2", "CollectiveReduceScatterV2", "Conv", "Conv2DBackpropFilterV2",
        "Conv2DBackpropInputV2", "CopyToMeshGrad", "DebugIdentityV3", "DistributedSave",
        "RaggedFillEmptyRows", "RaggedFillEmptyRowsGrad", "RandomDatasetV2", "RelayoutLike",
        "SegmentMaxV2", "SegmentMinV2", "SegmentProdV2", "SegmentSumV2", "SnapshotChunkDataset",
        "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2", "SparseSegmentSumGradV2",
        "StatelessRandomGammaV3", "SyncDevice", "TFRecordDatasetV2", "TPUPartitionedInputV2",
        "TPUPartitionedOutputV2", "UniformQuantizedAdd", "UniformQuantizedConvolution",
        "UniformQuantizedConvolutionHybrid",
    }),
    17: frozenset({
        "ConvertToCooTensor", "ConvertToListOfSparseCoreCooTensors",
        "ConvertToSparseCoreCsrWrappedCooTensor", "DatasetFingerprint",
        "DynamicEnqueueTPUEmbeddingRaggedTensorBatch", "FFTND",
        "GetMinibatchSplitsWithPhysicalReplica", "GetMinibatchesInCsrWithPhysicalReplica",
        "GetStatsFromListOfSparseCoreCooTensors", "GlobalIterId", "GlobalShuffleDataset", "IFFTND",
        "IRFFTND", "IndexFlatMapDataset", "IteratorGetModelProto", "ListSnapshotChunksDataset",
        "RFFTND", "SortListOfSparseCoreCooTensors", "StoreMinibatchStatisticsInFdo",
        "TPUAnnotateTensorsWithDynamicShape", "TPUCopyWithDynamicShape", "WeightedFlatMapDataset",
        "XlaSparseCoreAdagrad", "XlaSparseCoreAdagradMomentum", "XlaSparseCoreAdam",
        "XlaSparseCoreFtrl", "XlaSparseCoreSgd", "XlaSparseDenseMatmul",
        "XlaSparseDenseMatmulGradWithAdagradAndCsrInput",
        "XlaSparseDenseMatmulGradWithAdagradAndStaticBufferSize",
        "XlaSparseDenseMatmulGradWithAdagradMomentumAndCsrInput",
        "XlaSparseDenseMatmulGradWithAdagradMomentumAndStaticBufferSize",
        "XlaSparseDenseMatmulGradWithAdamAndCsrInput",
        "XlaSparseDenseMatmulGradWithAdamAndStaticBufferSize",
        "XlaSparseDenseMatmulGradWithFtrlAndCsrInput",
        "XlaSparseDenseMatmulGradWithFtrlAndStaticBufferSize",
        "XlaSparseDenseMatmulGradWithSgdAndCsrInput",
        "XlaSparseDenseMatmulGradWithSgdAndStaticBufferSize", "XlaSparseDenseMatmulWithCsrInput",
        "XlaSparseDenseMatmulWithStaticBufferSize",
    }),
    19: frozenset({
        "CheckPinned", "XlaSparseDenseMatmulGradWithCsrInput",
    }),
    20: frozenset({
        "DecodeWebP", "TPUDummyInput",
        "XlaSparseDenseMatmulCustomCombinerOnTcGradWithAdagradAndCsrInput",
        "XlaSparseDenseMatmulCustomCombinerOnTcGradWithAdagradMomentumAndCsrInput",
        "XlaSparseDenseMatmulCustomCombinerOnTcGradWithAdamAndCsrInput",
        "XlaSparseDenseMatmulCustomCombinerOnTcGradWithCsrInput",
        "XlaSparseDenseMatmulCustomCombinerOnTcGradWithFtrlAndCsrInput",
        "XlaSparseDenseMatmulCustomCombinerOnTcGradWithSgdAndCsrInput",
        "XlaSparseDenseMatmulCustomCombinerOnTcWithCsrInput",
    }),
    21: frozenset({
        "DecodeJxl",
    }),
})
# fmt: on

# The minor versions of server 2.x from which on a list holds. Between two known servers the
# older list is taken: operations were only ever added, so it is what surely is there.
_TEXT_SINCE = ((20, _TEXT_2_20), (14, _TEXT_2_12), (6, _TEXT_2_5))
_OLDEST_MINOR, _NEWEST_MINOR = 6, 20


def text_ops(server: str) -> frozenset[str]:
    """The operations of TensorFlow Text in a server version such as ``2.19`` or ``2.6.2``.

    Raises:
        ValueError: for a version whose operations are not known.
    """
    minor = _minor(server)
    return next(ops for since, ops in _TEXT_SINCE if minor >= since)


def later_core_ops(server: str) -> set[str]:
    """TensorFlow's own operations that came after the one that a server is built with."""
    minor = _minor(server)
    return {op for since, ops in _CORE_ADDED.items() if since > minor for op in ops}


def used_ops(saved_model: str | Path) -> dict[str, str]:
    """The operations of a SavedModel, in its graphs and in their function libraries.

    Returns:
        For each the node that has it, one of several: its name, which begins with the layers that
        it lies in.
    """
    from tensorflow.core.protobuf import saved_model_pb2

    proto = saved_model_pb2.SavedModel()
    proto.ParseFromString((Path(saved_model) / "saved_model.pb").read_bytes())
    ops: dict[str, str] = {}
    functions: set[str] = set()
    for meta_graph in proto.meta_graphs:
        graph = meta_graph.graph_def
        ops |= {node.op: node.name for node in graph.node}
        for function in graph.library.function:
            functions.add(function.signature.name)
            ops |= {node.op: node.name for node in function.node_def}
    # A node may call a function of the library by its name, as if it were an operation.
    return {op: node for op, node in ops.items() if op not in functions}


def core_ops(names: Iterable[str]) -> set[str]:
    """Those of the names that are registered in this process.

    These are TensorFlow's own operations, and those of the libraries that were imported.
    """
    from tensorflow.python.framework import op_def_registry

    return {name for name in names if op_def_registry.get(name) is not None}


def unsupported(ops: Iterable[str], core: Iterable[str], server: str) -> list[str]:
    """The operations that a server version cannot run, sorted.

    Args:
        ops: those that a model uses.
        core: those of TensorFlow itself, as far as it is installed here; operations of TensorFlow
            Text among them, which it has once that is imported, do not count.
        server: the version.
    """
    own = set(core) - later_core_ops(server) - _TEXT_SINCE[0][1]
    return sorted(set(ops) - own - text_ops(server))


def _minor(server: str) -> int:
    major, _, rest = server.partition(".")
    minor = rest.partition(".")[0]
    if major == "2" and minor.isdecimal() and _OLDEST_MINOR <= int(minor) <= _NEWEST_MINOR:
        return int(minor)
    raise ValueError(
        f"the operations of TensorFlow Serving {server!r} are not known"
        f" (choices: 2.{_OLDEST_MINOR} to 2.{_NEWEST_MINOR})"
    )
