"""A server with small models, its page in a browser, and what the tests do with both."""

import json
import os
import urllib.parse
from pathlib import Path

import pytest
import tensorflow as tf

from regard.serving.contract import IN_MEMORY
from regard.serving.server.manager import ModelManager
from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import ManagerOptions, ServerOptions
from regard.serving.server.server import Server
from regard.serving.web import create_routes
from tests import fake_models, fake_tasks
from tests.serving.server.conftest import Running


class Scored(fake_models.Reverser):
    """A reverser with subword tokens, of which the second is improbable."""

    def contract(self):
        contract = super().contract()
        contract["signatures"]["score"]["outputs"]["target_scores"] = ["target_length"]
        return contract

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string, name=n) for n in ("source", "target")]
    )
    def score(self, source, target):
        outputs = super().score(source, target)
        places = tf.range(tf.shape(outputs["target_pieces"])[1])[None, :]
        scores = tf.where(places == 1, -2.0, -0.1) + 0.0 * outputs["score"][:, None]
        return {**outputs, "target_scores": scores}


class Tagged(fake_models.Reverser):
    """A reverser whose texts begin with a tag."""

    def contract(self):
        return {**super().contract(), "tags": ["de", "fr"]}


NAMES = {
    "scored": Scored,
    "tagged": Tagged,
    "reverser": fake_models.Reverser,
    "confident": fake_models.Confident,
    "heads": fake_models.ManyHeaded,
    "constrained": fake_models.Constrained,
    "scoreless": lambda: fake_models.Reverser("nan"),
    "finder": fake_tasks.Finder,
    "sorter": fake_tasks.Sorter,
    "namer": fake_tasks.Namer,
    "matcher": fake_tasks.Matcher,
}
# A folder for screenshots of the tests; none by default.
PICTURES = os.environ.get("REGARD_TEST_PICTURES")


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    for name, make in NAMES.items():
        fake_models.save(make(), root / name / "1")
    rows = [{"inputs": {"source": text}, "answer": {}} for text in ("abc", "abc", "x" * 90, "d")]
    (root / "reverser" / "1" / IN_MEMORY).write_text(json.dumps(rows), encoding="utf-8")
    tagged = [{"inputs": {"source": "<fr> ab"}, "answer": {}}]
    (root / "tagged" / "1" / IN_MEMORY).write_text(json.dumps(tagged), encoding="utf-8")
    strange = fake_models.save(fake_models.Reverser(), root / "strange" / "1")
    (strange / "assets.extra" / "contract.json").unlink()
    models = [ModelConfig(name, root / name) for name in (*NAMES, "strange", "absent")]
    manager = ModelManager(models, ManagerOptions(poll_seconds=0))
    created = Server(
        manager, ServerOptions(grpc_port=None, rest_port=0), create_routes(manager, True)
    )
    running = Running(manager, created)
    yield running
    running.stop()


@pytest.fixture
def page(chromium, server, request):
    """Open the page with a model and its inputs in the URL."""

    def open_page(model="", **inputs):
        query = urllib.parse.urlencode({"model": model, **inputs})
        chromium.open(f"http://127.0.0.1:{server.server.rest_port}/#{query}")
        chromium.wait("document.querySelectorAll('#model option').length > 0")
        return chromium

    chromium.log.clear()
    yield open_page
    if PICTURES:
        chromium.screenshot(Path(PICTURES, f"{request.node.name}.png"))
    assert chromium.log == []


def wait_for_output(page):
    page.wait("!document.getElementById('output').hidden")
    return page.text("#hypothesis")


def run_model(page, text=None):
    """Click the button, after changing the text."""
    if text is not None:
        page.run(
            f"document.querySelector('textarea').value = {json.dumps(text)};"
            "for (const name of ['input', 'change'])"
            " document.querySelector('textarea').dispatchEvent(new Event(name))"
        )
    page.run("document.getElementById('run').click()")
