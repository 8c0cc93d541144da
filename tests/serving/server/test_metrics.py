"""Metrics in Prometheus's text format."""

from __future__ import annotations

from regard.serving.server.metrics import Metrics, exponential_edges


def test_counters_and_histograms():
    metrics = Metrics()
    for _ in range(2):
        metrics.count_request('a"b', "Predict", "GRPC", "OK", 25e-6)
    metrics.count_request("m", "predict", "REST", "NOT_FOUND", 1.0)
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
    # Rejected requests have no latency.
    assert lines[-3:] == [
        f'{name}_bucket{{{labels},le="+Inf"}} 2',
        f"{name}_sum{{{labels}}} 50",
        f"{name}_count{{{labels}}} 2",
    ]


def test_an_edge_belongs_to_the_lower_bucket():
    metrics = Metrics()
    metrics.count_rows("m", 2)
    text = metrics.text()
    assert ':tensorflow:serving:request_example_counts_bucket{model="m",le="1"} 0' in text
    assert ':tensorflow:serving:request_example_counts_bucket{model="m",le="2"} 1' in text
    assert ':tensorflow:serving:request_example_count_total{model="m"} 2' in text


def test_runtime_and_warm_up():
    metrics = Metrics()
    metrics.observe_runtime("m", 1e-3)
    metrics.observe_warm_up("m", 6, 1.0)
    text = metrics.text()
    labels = 'model_name="m",API="Predict",runtime="TF1"'
    assert f":tensorflow:serving:runtime_latency_sum{{{labels}}} 1000" in text
    name = ":tensorflow:serving:model_warmup_records_read"
    assert f'{name}{{model_path="m",status="OK"}} 6' in text


def test_origin_of_a_version():
    metrics = Metrics()
    metrics.record_origin("m", 3)
    name = ":tensorflow:serving:mlmd_map"
    assert metrics.text() == f'# TYPE {name} gauge\n{name}{{model_name="m",version="3"}} 0\n'


def test_edges():
    assert exponential_edges(1, 2, 4) == (1, 2, 4, 8)
