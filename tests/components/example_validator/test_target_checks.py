"""Targets that the normalization changes, and thresholds of words that targets do not separate."""

import json

import pytest

from regard.components.data.corpus_plan import CorpusPlan
from regard.components.data.sources import Corpus
from regard.components.example_validator.corpus_checks import check_corpus
from regard.components.example_validator.target_checks import TargetSettings
from regard.components.settings.data import DataConfig
from regard.components.settings.evaluation import EvaluationConfig
from regard.components.settings.tokenizer import TokenizerConfig
from regard.core.errors import UserError
from tests.components.corpora import TRANSLATION


def corpus(folder, rows, **checks):
    (folder / "rows.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    data = {"root": str(folder), "train": "rows.tsv", "checks": checks}
    return CorpusPlan(Corpus(DataConfig.model_validate(data), tuple(TRANSLATION), spans=()))


def test_the_share_of_changed_targets_is_a_check_that_can_fail(tmp_path):
    rows = [f"number {n}\tNummer {n}{' …' if n % 4 == 0 else ''}" for n in range(400)]
    # A source may have characters that a model does not have to write.
    rows += [f"another … number {n}\tNummer {n} noch" for n in range(400)]
    targets = TargetSettings("nmt_nfkc")
    check_corpus(corpus(tmp_path, rows, normalization={"action": "fail", "limit": 0.2}), targets)
    plan = corpus(tmp_path, rows, normalization={"action": "fail"})
    with pytest.raises(UserError) as caught:
        check_corpus(plan, targets)
    assert "100 of 800 rows" in caught.value.message
    assert "'Nummer 0 ...', not 'Nummer 0 …'" in caught.value.message
    assert "identity" in caught.value.remedy
    check_corpus(plan, TargetSettings("identity"))


def settings_of(tokenize, **thresholds):
    return TargetSettings.from_sections(
        TokenizerConfig(),
        EvaluationConfig(metrics=["bleu", "chrf", "ter"], tokenize=tokenize, thresholds=thresholds),
    )


CHINESE = [f"sentence {n}\t我们昨天去了第{n}个城市看朋友。" for n in range(40)]
THAI = [f"sentence {n}\tฉันอยากไปเที่ยวทะเลกับเพื่อน {n}" for n in range(40)]
SPACED = [f"sentence {n}\t我们 昨天 去 了 第 {n} 个 城市 。" for n in range(40)]


@pytest.mark.parametrize("rows", [CHINESE, THAI], ids=["Chinese", "Thai"])
@pytest.mark.parametrize("metric", ["bleu", "bleu_1", "ter"])
def test_a_threshold_of_words_needs_words(tmp_path, rows, metric):
    plan = corpus(tmp_path, rows)
    with pytest.raises(UserError) as caught:
        check_corpus(plan, settings_of("13a", **{metric: 20.0}))
    assert caught.value.where == "evaluation.tokenize"
    assert f"evaluation.thresholds.{metric}" in caught.value.message
    for name in ("zh", "ja-mecab", "char"):
        assert name in caught.value.remedy
        check_corpus(plan, settings_of(name, **{metric: 20.0}))
    check_corpus(plan, settings_of("13a", chrf=20.0))


def test_targets_with_spaces_have_words(tmp_path):
    mixed = [*CHINESE[:10], *[f"number {n}\tthis is sentence {n} of many" for n in range(90)]]
    for rows in (SPACED, mixed):
        check_corpus(corpus(tmp_path, rows), settings_of("13a", bleu=20.0))


def test_settings_survive_json():
    for settings in (
        settings_of("13a", bleu=1.0, ter=2.0),
        settings_of("zh", bleu=1.0),
        TargetSettings(),
    ):
        assert TargetSettings.from_json(settings.to_json()) == settings
    assert json.loads(settings_of("zh", bleu=1.0).to_json())["thresholds"] == []


def test_thresholds_of_slices_count():
    slices = {"thresholds": {"length=0-10": {"bleu": 3.0}}}
    settings = TargetSettings.from_sections(None, EvaluationConfig(slices=slices))
    assert settings.thresholds == ("evaluation.slices.thresholds.length=0-10.bleu",)
    assert settings.normalization == "identity"
