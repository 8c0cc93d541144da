"""TFX's Evaluator with Regard's metrics."""

import pytest
import sacrebleu
import tensorflow as tf
import tensorflow_model_analysis as tfma

from regard.components import eval_config
from regard.core.errors import UserError
from regard.models.tasks.served_model import EXAMPLES_SIGNATURE
from tests.models.tasks.exported import created, save_signatures, serialized
from tests.models.tasks.tokenizers import write_tokenizers

SOURCES = ["a cat sat on the mat", "the dog", "", "home far away", "a dog ran", "the mat"]


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """A folder with an exported model and examples, its outputs, and references like them."""
    folder = tmp_path_factory.mktemp("evaluated")
    write_tokenizers(folder)
    small = {"encoder": {"type": "embedding"}, "decoder": {"type": "luong", "units": 4}}
    served = created(folder, save=False, **small)
    save_signatures(served, ["serving_default", EXAMPLES_SIGNATURE], folder / "saved")
    outputs = served.signatures["serving_default"](tf.constant(SOURCES))["translation"]
    hypotheses = [text.decode() for text in outputs.numpy()]
    # Like the outputs, but not the same: neither figure is 0 or 100.
    references = [f"{text} {text[:n]} und so weiter" for n, text in enumerate(hypotheses)]
    with tf.io.TFRecordWriter(str(folder / "rows.gz"), "GZIP") as writer:
        for source, target in zip(SOURCES, references, strict=True):
            writer.write(serialized(source=[source.encode()], target=[target.encode()]))
    return folder, hypotheses, references


def test_the_figures_are_those_of_sacrebleu(evaluated, tmp_path):
    folder, hypotheses, references = evaluated
    config = eval_config("translation", ("bleu", "chrf", "ter"), {"chrf": 99.0, "ter": 1000.0})
    result = tfma.run_model_analysis(
        eval_shared_model=tfma.default_eval_shared_model(str(folder / "saved"), eval_config=config),
        eval_config=config,
        data_location=str(folder / "rows.gz"),
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
