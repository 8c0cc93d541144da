"""Which worker this is, and what is said where TF_CONFIG does not tell."""

import json

import pytest

from components.errors import UserError
from components.trainer import cluster

TWO = {"worker": ["a:1", "b:2"]}


def config(workers=TWO, kind="worker", index=1):
    return {"TF_CONFIG": json.dumps({"cluster": workers, "task": {"type": kind, "index": index}})}


def test_places():
    place = cluster.place(config())
    assert (place.addresses, place.index, place.chief) == (("a:1", "b:2"), 1, False)
    assert cluster.place(config(index=0)).chief
    assert cluster.place(config(index="1")).index == 1
    assert cluster.place(config({"worker": ["[::1]:1", "[::1]:2"]})).addresses[0] == "[::1]:1"


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({}, "not set"),
        ({"TF_CONFIG": "{"}, "no description of workers"),
        ({"TF_CONFIG": "[]"}, "no description of workers"),
        ({"TF_CONFIG": '{"task": {"type": "worker", "index": 0}}'}, "KeyError: 'cluster'"),
        (config({**TWO, "ps": ["c:3"]}), "ps, worker"),
        (config(kind="evaluator"), "evaluator, worker"),
        (config(index=2), "no worker 2 among 2"),
        (config(index=-1), "no worker -1"),
        (config({"worker": "host-a:2222"}), "not a list"),
        (config({"worker": {"0": "a:1"}}), "not a list"),
        (config({"worker": [None, {}]}), "an address is None"),
        (config({"worker": ["a:1", "b"]}), "'b' is not HOST:PORT"),
        (config({"worker": ["a:1", "b:"]}), "'b:' is not HOST:PORT"),
        (config({"worker": [":1", "b:1"]}), "':1' is not HOST:PORT"),
        (config({"worker": ["a:1", "b:65536"]}), "'b:65536' is not HOST:PORT"),
        (config({"worker": ["a:1", "a:1"]}), "'a:1' stands there twice"),
        (config(["worker"]), "cluster is .'worker'., not a dict"),
        (config(index=True), "True is no whole number"),
        (config(index=0.9), "0.9 is no whole number"),
        (config(index=float("inf")), "inf is no whole number"),
        (config(index="1_0"), "'1_0' is no whole number"),
        (config(kind=None), "type is None"),
        (config(kind=["worker"]), "type is .'worker'., not a str"),
        (config({**TWO, "chief": []}), "chief, worker"),
    ],
)
def test_what_is_no_place_is_refused(environ, told):
    with pytest.raises(UserError, match=told) as error:
        cluster.place(environ)
    assert error.value.where == "TF_CONFIG"
    assert error.value.remedy
