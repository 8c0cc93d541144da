"""What is reported about the inputs of a training."""

from types import SimpleNamespace

import numpy as np
import pytest
import sentencepiece

from regard.components.trainer.training_inputs import _report_spans
from regard.core import events
from regard.models.protected_spans import CLOSE, OPEN, protection_symbols, symbol
from regard.models.settings.protect import ProtectConfig
from tests.models.tasks.tokenizers import trained


@pytest.fixture(scope="module")
def processor():
    symbols = {"user_defined_symbols": protection_symbols()}
    model = trained(["a dog ran"], vocab_size=120, model_type="bpe", **symbols)
    return sentencepiece.SentencePieceProcessor(model_proto=model)


@pytest.mark.parametrize(
    ("texts", "placement", "kind"),
    [
        (["a dog", f"{symbol(3)} ran"], "tokens", "warning"),
        ([f"a{symbol(OPEN)} dog{symbol(CLOSE)}", "ran"], "tokens", "note"),
        (["a dog", f"{symbol(3)} ran"], "attention", "note"),
        (["a dog", "ran"], "attention", "warning"),
        ([], "tokens", "warning"),
    ],
)
def test_rows_with_spans_are_counted(texts, placement, kind, processor, tmp_path, monkeypatch):
    monkeypatch.setenv(events.VARIABLE, str(tmp_path / "events"))
    rows = [{"source_ids": np.array(processor.encode(text))} for text in texts]
    batches = SimpleNamespace(complete_rows=lambda count: rows[:count])
    protect = ProtectConfig(kinds=("numbers", "markup"), placement=placement)
    _report_spans(batches, processor, protect)
    ((event, _),) = events.read(tmp_path / "events", 0)
    assert event["kind"] == kind
    count = sum(symbol(3) in text or symbol(OPEN) in text for text in texts)
    assert f"{count} of {len(texts)} rows" in event["text"]
