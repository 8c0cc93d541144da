"""Metrics in Prometheus's text format."""

from regard.serving.server.metrics import Metrics


def test_counters():
    metrics = Metrics()
    for model, status in (('a"b', "OK"), ("m", "NOT_FOUND"), ('a"b', "OK")):
        metrics.count("request_count", model_name=model, status=status)
    name = ":tensorflow:serving:request_count"
    assert metrics.text().splitlines() == [
        f"# TYPE {name} counter",
        f'{name}{{model_name="a\\"b",status="OK"}} 2',
        f'{name}{{model_name="m",status="NOT_FOUND"}} 1',
    ]


def test_histograms():
    metrics = Metrics()
    for value in (10, 25, 25):  # an edge belongs to the lower bucket
        metrics.observe("request_latency", value, model_name="m", API="Predict")
    lines = metrics.text().splitlines()
    name, labels = ":tensorflow:serving:request_latency", 'model_name="m",API="Predict"'
    assert lines[:4] == [
        f"# TYPE {name} histogram",
        f'{name}_bucket{{{labels},le="10"}} 1',
        f'{name}_bucket{{{labels},le="18"}} 1',
        f'{name}_bucket{{{labels},le="32.4"}} 3',
    ]
    assert lines[-3:] == [
        f'{name}_bucket{{{labels},le="+Inf"}} 3',
        f"{name}_sum{{{labels}}} 60",
        f"{name}_count{{{labels}}} 3",
    ]
