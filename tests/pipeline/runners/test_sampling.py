from __future__ import annotations

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.worker import statesampler

from pipeline.runners import sampling


def _run_a_job() -> None:
    options = PipelineOptions(["--runner=FnApiRunner", "--direct_running_mode=in_memory"])
    with beam.Pipeline(options=options) as pipeline:
        _ = pipeline | beam.Create([1]) | beam.Map(lambda row: row + 1)


def test_stages_are_looked_at_often_while_the_block_runs(monkeypatch):
    plain, periods = statesampler.StateSampler, []

    class Seen(plain):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            periods.append(self.sampling_period_ms)

    monkeypatch.setattr(statesampler, "StateSampler", Seen)
    with sampling.brief():
        _run_a_job()
    assert set(periods) == {sampling.PERIOD_MS}
    assert statesampler.StateSampler is Seen


def test_beams_own_comes_back_after_an_error():
    plain = statesampler.StateSampler
    with pytest.raises(ValueError, match="wrong"), sampling.brief():
        raise ValueError("wrong")
    assert statesampler.StateSampler is plain
