"""The checks of `regard validate` find what ExampleValidator finds in the same corpus."""

import json

import pytest

from regard.components.checks.base import DataCheck
from regard.components.common.artifact_types import Findings
from regard.components.data.corpus_plan import CorpusPlan
from regard.components.data.sources import Corpus
from regard.components.example_validator.check_results import describe
from regard.components.example_validator.corpus_checks import check_corpus
from regard.components.example_validator.target_checks import TargetSettings
from regard.components.settings.data import DataConfig
from regard.components.settings.data_checks import DataChecksConfig
from regard.core.errors import UserError
from tests.components.corpora import BEAM, TRANSLATION

TRAIN = [f"a sentence about the number {n}\tein Satz über die Zahl {n}" for n in range(40)]
TRAIN += [TRAIN[7], TRAIN[8], "no target\t", "same text\tsame text", "zero\u200bwidth\tnull …"]
TRAIN += ["a\tein sehr viel längerer Satz als der andere", f"{'long ' * 500}\t{'lang ' * 500}"]
EVAL = [
    "a sentence about the number 3\teine andere Übersetzung",
    "a text\tein Satz über die Zahl 9",
]
EVAL += ["a sentence about the number 333\tZahl 333", "Это по-русски\tRussisch", "nice\tschÃ¶n"]
EVAL += ["a <b>bold text\tein <b>fetter</b> Text", "say &quot;yes&quot;\tsag ja", "well , no\tnein"]
TARGETS = TargetSettings("nmt_nfkc")
NAMES = [name for name, check in DataChecksConfig() if isinstance(check, DataCheck)]


def checks(action, names=NAMES):
    return {name: {"limit": 0.0, "action": action} if name in names else None for name in NAMES}


def corpus(folder, checks):
    data = {"root": str(folder), "train": "train.tsv", "eval": "eval.tsv", "checks": checks}
    return Corpus(DataConfig.model_validate(data), tuple(TRANSLATION), spans=())


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """The findings of ExampleValidator, with the folder of the corpus."""
    from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
    from tfx.types import standard_artifacts

    from regard.components.corpus_gen.executor import CorpusGenExecutor
    from regard.components.example_validator import executor as validator

    folder = tmp_path_factory.mktemp("corpus")
    for name, rows in (("train", TRAIN), ("eval", EVAL)):
        (folder / f"{name}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    data = corpus(folder, checks("warn"))

    def artifact(kind, name):
        instance = kind()
        instance.uri = str(folder / name)
        return [instance]

    examples = artifact(standard_artifacts.Examples, "examples")
    outputs = {"examples": examples, "findings": artifact(Findings, "corpus")}
    context = BaseBeamExecutor.Context(beam_pipeline_args=BEAM, tmp_dir=str(folder / "tmp"))
    properties = {"corpus": json.dumps(data.to_json()), "fingerprint": ""}
    CorpusGenExecutor(context).Do({}, outputs, properties)
    anomalies = artifact(standard_artifacts.ExampleAnomalies, "none")
    anomalies[0].split_names = "[]"
    properties = {
        "checks": data.config.checks.model_dump_json(),
        "features": json.dumps([feature.to_json() for feature in TRANSLATION]),
        "pinned_schema": "",
        "targets": TARGETS.to_json(),
        "production": "",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validator.tfx_executor.Executor, "Do", lambda *_: None)
        validator.ExampleValidatorExecutor(context).Do(
            {"examples": examples, "statistics": [None], "schema": [None]},
            {"anomalies": anomalies, "findings": artifact(Findings, "findings")},
            properties,
        )
    return folder, json.loads((folder / "findings/checks.json").read_text("utf-8"))["checks"]


@pytest.mark.parametrize("name", NAMES)
def test_each_check_fails_as_in_a_run(findings, name):
    folder, every = findings
    assert every[name]["count"] > 0
    with pytest.raises(UserError) as caught:
        check_corpus(CorpusPlan(corpus(folder, checks("fail", [name]))), TARGETS)
    assert caught.value.message == describe(name, every[name])
    check_corpus(CorpusPlan(corpus(folder, checks("warn"))), TARGETS)
