"""The text that Prometheus reads."""

from __future__ import annotations

from serving.local.metrics import Metrics, exponential


def test_counters_and_histograms():
    metrics = Metrics()
    for _ in range(2):
        metrics.request('a"b', "Predict", "GRPC", "OK", 25e-6)
    metrics.request("m", "predict", "REST", "NOT_FOUND", 1.0)
    lines = metrics.text().splitlines()
    name = ":tensorflow:serving:request_count"
    assert lines[:3] == [
        f"# TYPE {name} counter",
        f'{name}{{model_name="a\\"b",status="OK"}} 2',
        f'{name}{{model_name="m",status="NOT_FOUND"}} 1',
    ]
    name = ":tensorflow:serving:request_latency"
    labels = 'model_name="a\\"b",API="Predict",entrypoint="GRPC"'
    assert lines[3] == f"# TYPE {name} histogram"
    assert lines[4:8] == [
        f'{name}_bucket{{{labels},le="10"}} 0',
        f'{name}_bucket{{{labels},le="18"}} 0',
        f'{name}_bucket{{{labels},le="32.4"}} 2',
        f'{name}_bucket{{{labels},le="58.32"}} 2',
    ]
    # What was refused took no time that counts.
    assert lines[-3:] == [
        f'{name}_bucket{{{labels},le="+Inf"}} 2',
        f"{name}_sum{{{labels}}} 50",
        f"{name}_count{{{labels}}} 2",
    ]


def test_a_value_on_an_edge_is_below_it():
    metrics = Metrics()
    metrics.rows("m", 2)
    text = metrics.text()
    assert ':tensorflow:serving:request_example_counts_bucket{model="m",le="1"} 0' in text
    assert ':tensorflow:serving:request_example_counts_bucket{model="m",le="2"} 1' in text
    assert ':tensorflow:serving:request_example_count_total{model="m"} 2' in text


def test_how_long_a_model_computed_and_warmed_up():
    metrics = Metrics()
    metrics.ran("m", 1e-3)
    metrics.warmed("m", 6, 1.0)
    text = metrics.text()
    labels = 'model_name="m",API="Predict",runtime="TF1"'
    assert f":tensorflow:serving:runtime_latency_sum{{{labels}}} 1000" in text
    name = ":tensorflow:serving:model_warmup_records_read"
    assert f'{name}{{model_path="m",status="OK"}} 6' in text


def test_which_run_made_a_version():
    metrics = Metrics()
    metrics.identified("m", 3)
    name = ":tensorflow:serving:mlmd_map"
    assert metrics.text() == f'# TYPE {name} gauge\n{name}{{model_name="m",version="3"}} 0\n'


def test_edges():
    assert exponential(1, 2, 4) == (1, 2, 4, 8)
