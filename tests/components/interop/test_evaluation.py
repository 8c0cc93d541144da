"""TFX's Evaluator with Regard's metrics."""

import pytest
import sacrebleu
import tensorflow as tf
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.metrics import metric_specs
from tensorflow_serving.apis import prediction_log_pb2
from tfx.components.bulk_inferrer.executor import Executor as BulkInferrerExecutor
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.proto import bulk_inferrer_pb2
from tfx.types import standard_artifacts
from tfx.utils import proto_utils

from regard.components import eval_config
from regard.components.interop.tfma_metrics import CorpusMetric
from regard.core.errors import UserError
from regard.models.tasks.served_model import EXAMPLES_SIGNATURE
from tests.components.corpora import BEAM
from tests.models.tasks.exported import created, save_signatures, serialized
from tests.models.tasks.tokenizers import write_tokenizers

SOURCES = [
    "a cat sat on the mat",
    "the dog",
    "",
    "home far away",
    "a dog ran",
    "the mat",
    "the cat",
]


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """A folder with an exported model and examples, its outputs, and references like them.

    The last example has no reference.
    """
    folder = tmp_path_factory.mktemp("evaluated")
    write_tokenizers(folder)
    small = {"encoder": {"type": "embedding"}, "decoder": {"type": "luong", "units": 4}}
    served = created(folder, save=False, **small)
    model = folder / "model" / "Format-Serving"
    save_signatures(served, ["serving_default", EXAMPLES_SIGNATURE], model)
    outputs = served.signatures["serving_default"](tf.constant(SOURCES))["translation"]
    hypotheses = [text.decode() for text in outputs.numpy()]
    # Like the outputs, but not the same: neither figure is 0 or 100.
    references = [f"{text} {text[:n]} und so weiter" for n, text in enumerate(hypotheses[:-1])]
    rows = folder / "examples" / "Split-test" / "data_tfrecord-00000-of-00001.gz"
    rows.parent.mkdir(parents=True)
    with tf.io.TFRecordWriter(str(rows), "GZIP") as writer:
        for source, target in zip(SOURCES[:-1], references, strict=True):
            writer.write(serialized(source=[source.encode()], target=[target.encode()]))
        writer.write(serialized(source=[SOURCES[-1].encode()]))
    return folder, hypotheses, references


def test_the_figures_are_those_of_sacrebleu(evaluated, tmp_path):
    folder, outputs, references = evaluated
    hypotheses = outputs[: len(references)]
    config = eval_config("translation", ("bleu", "chrf", "ter"), {"chrf": 99.0, "ter": 1000.0})
    result = tfma.run_model_analysis(
        eval_shared_model=tfma.default_eval_shared_model(
            str(folder / "model" / "Format-Serving"), eval_config=config
        ),
        eval_config=config,
        data_location=str(folder / "examples" / "Split-test" / "*"),
        output_path=str(tmp_path),
        writers=None,
    )
    values = result.get_metrics_for_slice()
    expected = {
        "bleu": sacrebleu.corpus_bleu(hypotheses, [references], force=True),
        "chrf": sacrebleu.corpus_chrf(hypotheses, [references]),
        "ter": sacrebleu.corpus_ter(hypotheses, [references]),
    }
    for name, score in expected.items():
        assert 0 < score.score < 100
        assert values[name]["doubleValue"] == pytest.approx(score.score, abs=1e-9)
    validation = tfma.load_validation_result(str(tmp_path))
    assert not validation.validation_ok
    (failed,) = validation.metric_validations_per_slice[0].failures
    assert failed.metric_key.name == "chrf"


def test_a_process_that_has_not_imported_the_metric_does_so():
    (metric,) = eval_config("translation", ["chrf"]).metrics_specs[0].metrics
    created = metric_specs.metric_instance(metric, {"another": tfma.metrics.Metric})
    assert isinstance(created, CorpusMetric)
    assert created.name == "chrf"


def test_bulk_inferrer_gives_the_outputs(evaluated, tmp_path):
    folder, hypotheses, _ = evaluated
    artifacts = {"examples": standard_artifacts.Examples(), "model": standard_artifacts.Model()}
    for name, artifact in artifacts.items():
        artifact.uri = str(folder / name)
    artifacts["examples"].split_names = '["test"]'
    result = standard_artifacts.InferenceResult()
    result.uri = str(tmp_path / "result")
    spec = bulk_inferrer_pb2.ModelSpec(model_signature_name=[EXAMPLES_SIGNATURE])
    properties = {"model_spec": proto_utils.proto_to_json(spec), "data_spec": "{}"}
    context = BaseBeamExecutor.Context(beam_pipeline_args=BEAM, tmp_dir=str(tmp_path / "tmp"))
    BulkInferrerExecutor(context).Do(
        {name: [artifact] for name, artifact in artifacts.items()},
        {"inference_result": [result]},
        properties,
    )
    outputs = []
    for path in (tmp_path / "result").glob("*.gz"):
        for record in tf.data.TFRecordDataset(str(path), "GZIP").as_numpy_iterator():
            log = prediction_log_pb2.PredictionLog.FromString(record)
            outputs.append(log.predict_log.response.outputs["translation"].string_val[0].decode())
    assert sorted(outputs) == sorted(hypotheses)


@pytest.mark.parametrize(
    ("task", "arguments", "error"),
    [
        ("translation", {"metrics": ["blue"]}, "Unknown metric 'blue'"),
        ("translation", {"metrics": ["mse"]}, "mse scores outputs of kind number"),
        ("translation", {"metrics": ["aer"]}, "aer is not a function of sums"),
        ("similarity", {"metrics": ["spearman"]}, "spearman is not a function of sums"),
        ("pointer", {"metrics": ["exact_match"]}, "exact_match is not a function of sums"),
        ("translation", {"tokenize": "words"}, "unknown tokenizer 'words'"),
        ("translation", {"thresholds": {"ter": 50}}, "threshold of ter"),
    ],
)
def test_what_the_evaluator_of_tfx_cannot_compute(task, arguments, error):
    with pytest.raises(UserError, match=error):
        eval_config(task, **arguments)
