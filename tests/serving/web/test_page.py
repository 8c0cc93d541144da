"""The page in a real browser: asking, looking, keys, links, themes, and text that stays text."""

from __future__ import annotations

import json
import os
import urllib.parse
from pathlib import Path

import httpx
import pytest

from serving.local.manager import Manager, Options
from serving.local.model_config import ModelConfig
from serving.local.server import Listening, Server
from serving.web import routes
from tests import fake_models, fake_tasks
from tests.serving.local.conftest import Running

NAMES = {
    "reverser": fake_models.Reverser,
    "heads": fake_models.ManyHeaded,
    "sorter": fake_tasks.Sorter,
    "namer": fake_tasks.Namer,
    "matcher": fake_tasks.Matcher,
}
# Where pictures of what the tests saw go, to be looked at; nowhere by default.
PICTURES = os.environ.get("REGARD_TEST_PICTURES")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    for name, make in NAMES.items():
        fake_models.save(make(), root / name / "1")
    strange = fake_models.save(fake_models.Reverser(), root / "strange" / "1")
    (strange / "assets.extra" / "contract.json").unlink()
    models = [ModelConfig(name, root / name) for name in (*NAMES, "strange", "absent")]
    manager = Manager(models, Options(poll_seconds=0))
    made = Server(manager, Listening(grpc_port=None, rest_port=0), routes(manager))
    running = Running(manager, made)
    yield running
    running.stop()


@pytest.fixture
def page(chromium, server, request):
    """Opens the page with a model and what it is asked, in an address."""

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


def answered(page):
    page.wait("!document.getElementById('answer').hidden")
    return page.text("#hypothesis")


def test_a_text_is_asked_and_its_looks_are_drawn(page):
    shown = page("reverser")
    assert shown.run("document.getElementById('ask').disabled") is True
    shown.run("document.querySelector('textarea').focus()")
    shown.call("Input.insertText", text="abc")
    shown.run("document.getElementById('ask').click()")
    assert answered(shown) == "CBA"
    assert "log-probability -1.500" in shown.text("#score")
    written = shown.run("[...document.querySelectorAll('button.piece')].map((b) => b.innerText)")
    assert written == ["C", "B", "A", "</s>"]
    # The first is chosen; the arrow keys go on.
    assert "“C” looked at c 100%" in shown.text("#picture")
    shown.run("document.querySelector('button.piece').focus()")
    shown.press("ArrowRight")
    assert "“B” looked at b 100%" in shown.text("#picture")
    assert shown.run("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert shown.run("document.querySelectorAll('.map rect').length") == 4 * 4 + 2
    lit = shown.run(
        "[...document.querySelectorAll('span.piece')].map((p) => p.style.backgroundColor)"
    )
    assert ["70.0%" in colour for colour in lit] == [False, True, False, False]


def test_layers_and_heads_are_asked_for_when_they_are_wanted(page):
    shown = page("heads", source="abc")
    assert answered(shown) == "CBA"
    assert shown.run("document.querySelectorAll('.thumbnail').length") == 0
    shown.run("document.querySelector('#heads summary').click()")
    shown.wait("document.querySelectorAll('.thumbnail').length > 0")
    names = shown.run(
        "[...document.querySelectorAll('.thumbnail')].map((b) => b.getAttribute('aria-label'))"
    )
    each = ["head 1", "head 2", "head 3", "mean of its heads"]
    assert names == [f"layer {layer}, {head}" for layer in (1, 2) for head in each]
    inside = "document.querySelector('.chosen').innerText"
    assert "What was written looks at what was read: layer 1, head 1" in shown.run(inside)
    assert "“C” looked at c 100%" in shown.run(inside)
    shown.run("document.querySelectorAll('.thumbnail')[5].click()")
    assert "layer 2, head 2" in shown.run(inside)
    assert "“C” looked at </s> 100%" in shown.run(inside)
    spread = shown.run(
        "[...document.querySelectorAll('.thumbnail')].slice(0, 3).map((b) => b.title)"
    )
    assert [title.split("entropy ")[1][:4] for title in spread] == ["0.0%", "0.0%", "100%"]
    # Another answer: what is open is asked for again.
    shown.run("document.querySelector('textarea').value = 'xy'")
    shown.run("document.getElementById('ask').click()")
    shown.wait("document.getElementById('hypothesis').innerText === 'YX'")
    shown.wait(f"document.querySelector('.chosen') && {inside}.includes('“Y” looked at y 100%')")
    shown.run("document.querySelector('textarea').value = 'z'.repeat(90)")
    shown.run("document.getElementById('ask').click()")
    shown.wait("document.querySelector('#all-heads .caption')?.innerText.includes('not shown')")
    shown = page("reverser", source="ab")
    answered(shown)
    assert shown.run("document.getElementById('heads').hidden") is True


def test_a_link_asks_at_once(page):
    shown = page("reverser", source="hello")
    assert answered(shown) == "OLLEH"
    shown.run("document.getElementById('link').click()")
    assert shown.wait("location.hash.slice(1)") == "model=reverser&source=hello"


@pytest.mark.parametrize(
    "text", ["<img src=x onerror=document.title='bad'>", "{{7*7}}", "שלום", "a\u202eb"]
)
def test_text_stays_text(page, text):
    shown = page("reverser", source=text)
    assert answered(shown) == text[::-1].upper()
    assert shown.run("document.querySelectorAll('main img').length") == 0
    assert shown.run("document.title") == "reverser – Regard"


def test_two_sentences(page):
    shown = page("matcher", first="abcd", second="abxy")
    assert answered(shown) == "0.500"
    assert shown.run("document.getElementById('looks').hidden") is True


def test_points_are_clicked(page):
    shown = page("sorter")
    box = shown.run(
        "(({left, top, width}) => ({left, top, width}))"
        "(document.querySelector('.plane').getBoundingClientRect())"
    )
    for x, y in ((0.5, 0.5), (0.25, 0.25), (0.75, 0.4)):
        shown.click(box["left"] + x * box["width"], box["top"] + y * box["width"])
    points = json.loads(shown.run("document.querySelector('textarea').value"))
    assert [[round(v, 2) for v in point] for point in points] == [
        [0.5, 0.5],
        [0.25, 0.75],
        [0.75, 0.6],
    ]
    shown.run("document.getElementById('ask').click()")
    assert answered(shown) == "1 → 0 → 2"
    assert shown.run("document.querySelectorAll('#picture .named').length") == 3
    # A click on a point takes it away.
    shown.click(box["left"] + 0.5 * box["width"], box["top"] + 0.5 * box["width"])
    assert len(json.loads(shown.run("document.querySelector('textarea').value"))) == 2


def test_an_image_is_chosen(page, tmp_path):
    file = tmp_path / "black.png"
    file.write_bytes(fake_tasks.png(30, 40))
    shown = page("namer")
    shown.choose("input[type=file]", file)
    shown.wait("!document.getElementById('ask').disabled")
    shown.run("document.getElementById('ask').click()")
    assert answered(shown) == "30 by 40"
    assert shown.run("document.querySelectorAll('#picture canvas').length") == 1
    assert "where it looked for “30”" in shown.text("#picture")


def test_what_is_seen_stays_what_was_asked_about(page, tmp_path):
    """Another image is dropped, and nobody has asked about it yet."""
    first, second = tmp_path / "first.png", tmp_path / "second.png"
    first.write_bytes(fake_tasks.png(30, 40))
    second.write_bytes(fake_tasks.png(10, 80))
    shown = page("namer")
    shown.choose("input[type=file]", first)
    shown.wait("!document.getElementById('ask').disabled")
    shown.run("document.getElementById('ask').click()")
    assert answered(shown) == "30 by 40"
    size = "(({width, height}) => width / height)(document.querySelector('#picture canvas'))"
    assert shown.run(size) == pytest.approx(40 / 30, abs=0.05)
    shown.choose("input[type=file]", second)
    shown.wait("document.querySelector('.drop span').innerText === 'second.png'")
    shown.run("document.querySelectorAll('#picture button.piece')[1].click()")
    assert shown.run(size) == pytest.approx(40 / 30, abs=0.05)
    shown.run("document.getElementById('ask').click()")
    shown.wait("document.getElementById('hypothesis').innerText === '10 by 80'")
    assert shown.run(size) == pytest.approx(80 / 10, abs=0.2)


def test_models_without_a_contract_and_models_that_are_not_there(page):
    shown = page("strange")
    assert "which says how to ask it" in shown.text("#message")
    shown = page("absent")
    assert "Servable not found" in shown.text("#message")


def test_what_the_server_refuses_is_told(page):
    shown = page("sorter", points="[[0.1,0.2]]")
    assert answered(shown) == "0"
    shown.run(
        "document.querySelector('textarea').value = '[[1e300, 0]]';"
        "document.querySelector('textarea').dispatchEvent(new Event('change'));"
        "document.getElementById('ask').click()"
    )
    shown.wait("document.getElementById('message').classList.contains('bad')")
    assert "without loss of precision" in shown.text("#message")
    shown.log.clear()  # a browser notes that an answer was 400


def test_light_and_dark(page):
    shown = page("reverser")
    colour = "getComputedStyle(document.body).backgroundColor"
    before = shown.run(colour)
    shown.run("document.getElementById('theme').click()")
    after = shown.run(colour)
    assert before != after
    assert page("reverser").run(colour) == after  # it is remembered
    shown.run("document.getElementById('theme').click()")


def test_everything_is_named_for_those_who_do_not_see(page):
    shown = page("reverser", source="ab")
    answered(shown)
    nameless = shown.run(
        "[...document.querySelectorAll('button, select, textarea, input, svg[role=img], canvas')]"
        ".filter((e) => !(e.innerText || e.getAttribute('aria-label') || e.labels?.length)).length"
    )
    assert nameless == 0


def test_the_files_come_with_a_strict_policy(server):
    base = f"http://127.0.0.1:{server.server.rest_port}"
    for path in (
        "/",
        "/page/app.js",
        "/page/heads.js",
        "/page/style.css",
        "/page/icon.svg",
        "/page/models.json",
    ):
        found = httpx.get(base + path)
        assert found.status_code == 200
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert found.headers["x-content-type-options"] == "nosniff"
    for path in ("/page/none.js", "/page/..%2f__init__.py", "/page/__init__.py", "/page/"):
        assert httpx.get(base + path).status_code == 404
    assert httpx.get(base + "/v1/models/reverser").status_code == 200


def test_no_file_asks_for_anything_from_elsewhere():
    folder = Path(__file__).resolve().parents[3] / "serving" / "web" / "page"
    for file in folder.iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text
        assert "https://" not in text
        assert "innerHTML" not in text
