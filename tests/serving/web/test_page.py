"""The page in a real browser: predictions, attention, keyboard, themes, escaping."""

import json
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from regard.serving.server.bearer_tokens import BearerTokens
from regard.serving.web import create_routes
from tests import browser, fake_tasks
from tests.serving.web.conftest import run_model, wait_for_output


def test_text_and_its_attention(page):
    displayed = page("reverser")
    assert displayed.run("document.getElementById('run').disabled") is True
    displayed.run("document.querySelector('textarea').focus()")
    displayed.call("Input.insertText", text="abc")
    run_model(displayed)
    assert wait_for_output(displayed) == "CBA"
    assert "log-probability -1.500" in displayed.text("#score")
    tokens = displayed.run("[...document.querySelectorAll('button.token')].map((b) => b.innerText)")
    assert tokens == ["C", "B", "A", "</s>"]
    # The first token is selected; the arrow keys move on.
    assert "“C” → c 100%" in displayed.text("#picture")
    displayed.run("document.querySelector('button.token').focus()")
    displayed.press("ArrowRight")
    assert "“B” → b 100%" in displayed.text("#picture")
    assert displayed.run("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert displayed.run("document.querySelectorAll('.map rect').length") == 4 * 4 + 2
    colours = displayed.run(
        "[...document.querySelectorAll('span.token')].map((p) => p.style.backgroundColor)"
    )
    assert ["70.0%" in colour for colour in colours] == [False, True, False, False]


def test_an_illustration_until_the_first_output(page):
    displayed = page("reverser")
    assert displayed.run("document.querySelectorAll('#sample .map rect').length") == 5 * 5 + 2
    displayed.run("document.querySelectorAll('#sample button.token')[2].click()")
    assert "“not” → nicht 87%" in displayed.text("#sample")
    displayed.run("document.querySelector('.example').click()")
    wait_for_output(displayed)
    assert displayed.run("document.getElementById('sample').hidden") is True
    assert displayed.run("document.querySelectorAll('#sample .map').length") == 0


def test_the_confidence_of_an_output(page):
    displayed = page("confident", source="a")
    assert wait_for_output(displayed) == "A"
    assert displayed.text("#confidence") == "confidence 61% · probability of chrf ≥ 50"
    displayed = page("confident", source="abcd")
    assert wait_for_output(displayed) == "DCBA"
    assert displayed.text("#confidence") == ""


def test_improbable_tokens_are_marked(page):
    displayed = page("scored", source="abc")
    assert wait_for_output(displayed) == "CBA"
    # The log-probability of -1.5 of four tokens.
    assert displayed.text("#score") == "mean token probability 69% · log-probability -1.500"
    assert displayed.run(
        "[...document.querySelectorAll('.uncertain')].map((b) => b.innerText)"
    ) == [
        "B",
        "Underlined",
    ]
    displayed.run("document.querySelectorAll('button.token')[1].click()")
    assert "“B” (probability 14%) → b 100%" in displayed.text("#picture")


def test_an_example_runs_the_model(page, server):
    displayed = page("reverser")
    assert displayed.text("#about") == "The model translates a text."
    texts = displayed.run("[...document.querySelectorAll('.example')].map((b) => b.innerText)")
    assert texts == ["abc", "x" * 59 + "…", "d"]
    displayed.run("document.querySelector('.example').click()")
    assert wait_for_output(displayed) == "CBA"
    assert displayed.run("document.querySelector('textarea').value") == "abc"
    other = page("finder")
    assert other.run("document.getElementById('examples').hidden") is True
    assert other.text("#about").startswith("Enter the inputs")  # its contract has no sentence
    routes = create_routes(server.manager, with_examples=False)
    models = TestClient(Starlette(routes=routes)).get("/page/models.json").json()
    assert not any(model["examples"] for model in models)


def test_layers_and_heads_are_requested_on_demand(page):
    displayed = page("heads", source="abc")
    assert wait_for_output(displayed) == "CBA"
    assert displayed.run("document.querySelectorAll('.thumbnail').length") == 0
    displayed.run("document.querySelector('#heads summary').click()")
    displayed.wait("document.querySelectorAll('.thumbnail').length > 0")
    names = displayed.run(
        "[...document.querySelectorAll('.thumbnail')].map((b) => b.getAttribute('aria-label'))"
    )
    each = ["head 1", "head 2", "head 3", "mean of all heads"]
    assert names == [f"layer {layer}, {head}" for layer in (1, 2) for head in each]
    inside = "document.querySelector('.selected').innerText"
    assert "Cross-attention: layer 1, head 1" in displayed.run(inside)
    assert "“C” → c 100%" in displayed.run(inside)
    displayed.run("document.querySelectorAll('.thumbnail')[5].click()")
    assert "layer 2, head 2" in displayed.run(inside)
    assert "“C” → </s> 100%" in displayed.run(inside)
    tiled = displayed.run(
        "[...document.querySelectorAll('.thumbnail')].slice(0, 3).map((b) => b.title)"
    )
    assert [title.split("entropy ")[1][:4] for title in tiled] == ["0.0%", "0.0%", "100%"]
    # A new output replaces an open section.
    run_model(displayed, "xy")
    displayed.wait("document.getElementById('hypothesis').innerText === 'YX'")
    displayed.wait(f"document.querySelector('.selected') && {inside}.includes('“Y” → y 100%')")
    run_model(displayed, "z" * 90)
    displayed.wait("document.querySelector('#all-heads .caption')?.innerText.includes('not shown')")
    displayed = page("reverser", source="ab")
    wait_for_output(displayed)
    assert displayed.run("document.getElementById('heads').hidden") is True


def test_entropy_is_relative_to_the_visible_tokens(page):
    """In decoder self-attention these are the tokens until now."""
    displayed = page("reverser")
    module = "import('/page/attention.js')"

    def entropy(row, t, weights):
        looks = f"{{weights: '{weights}'}}"
        return displayed.run(f"{module}.then((m) => m.relativeEntropy({row}, {t}, {looks}))")

    assert entropy([0.5, 0.5, 0, 0], 1, "target_heads") == pytest.approx(1.0)
    assert entropy([0.5, 0.5, 0, 0], 2, "target_heads") == pytest.approx(0.6309, abs=1e-4)
    assert entropy([0.5, 0.5, 0, 0], 1, "source_heads") == pytest.approx(0.5)
    assert entropy([1, 0], 0, "target_heads") == 0


@pytest.mark.skipif(not browser.AXE, reason="REGARD_AXE does not name axe-core")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("inputs", [{}, {"source": "abc", "open": "heads"}])
def test_axe_finds_nothing_serious(page, theme, inputs):
    displayed = page("heads", **inputs)
    displayed.run(f"document.documentElement.dataset.theme = '{theme}'")
    if inputs:
        displayed.wait("document.querySelector('.selected') !== null")
    assert displayed.violations() == []


@pytest.mark.parametrize(
    "text", ["<img src=x onerror=document.title='bad'>", "{{7*7}}", "שלום", "a\u202eb"]
)
def test_text_is_escaped(page, text):
    displayed = page("reverser", source=text)
    assert wait_for_output(displayed) == text[::-1].upper()
    assert displayed.run("document.querySelectorAll('main img').length") == 0
    assert displayed.run("document.title") == "reverser – Regard"


def test_constraints(page):
    displayed = page("constrained", source="abc")
    displayed.wait("document.getElementById('score').innerText.includes('-1.500')")
    assert wait_for_output(displayed) == "CBA"
    assert displayed.run("document.getElementById('constraints').open") is False
    displayed = page("constrained", source="abc", prefix="X", phrases="one\ntwo")
    assert wait_for_output(displayed) == "X|CBA|one\ntwo"
    assert displayed.run("document.getElementById('constraints').open") is True
    assert displayed.run("document.querySelectorAll('button.token').length") == 13 + 1
    displayed = page("reverser", source="abc")
    assert wait_for_output(displayed) == "CBA"
    assert displayed.run("document.getElementById('constraints').hidden") is True


def test_a_truncated_input_and_a_missing_score(page):
    displayed = page("reverser", source="a" * 120)
    assert wait_for_output(displayed) == "A" * 100
    assert (
        displayed.text("#message")
        == "The input is too long. At least its last 20 tokens were ignored."
    )
    assert displayed.run("document.getElementById('message').classList.contains('error')") is True
    displayed = page("scoreless", source="abc")
    assert wait_for_output(displayed) == "CBA"
    assert displayed.text("#score") == ""


def test_n_best(page):
    displayed = page("finder", passage="one two", question="what", open="nbest")
    assert wait_for_output(displayed) == "one"
    displayed.wait("document.getElementById('nbest').open")
    items = "[...document.querySelectorAll('#nbest li')].map((one) => one.innerText)"
    assert displayed.run(items) == [
        "oneprobability 37% · log-probability -1.000",
        "twoprobability 14% · log-probability -2.000",
    ]


def test_two_sentences(page):
    displayed = page("matcher", first="abcd", second="abxy")
    assert wait_for_output(displayed) == "0.500"
    assert displayed.run("document.getElementById('attention').hidden") is True


def test_points_are_clicked(page):
    displayed = page("sorter")
    box = displayed.run(
        "(({left, top, width}) => ({left, top, width}))"
        "(document.querySelector('.plane').getBoundingClientRect())"
    )
    for x, y in ((0.5, 0.5), (0.25, 0.25), (0.75, 0.4)):
        displayed.click(box["left"] + x * box["width"], box["top"] + y * box["width"])
    points = json.loads(displayed.run("document.querySelector('textarea').value"))
    expected = [[0.5, 0.5], [0.25, 0.75], [0.75, 0.6]]
    assert [[round(v, 2) for v in point] for point in points] == expected
    run_model(displayed)
    assert wait_for_output(displayed) == "1 → 0 → 2"
    assert displayed.run("document.querySelectorAll('#picture .named').length") == 3
    # A click on a point removes it.
    displayed.click(box["left"] + 0.5 * box["width"], box["top"] + 0.5 * box["width"])
    assert len(json.loads(displayed.run("document.querySelector('textarea').value"))) == 2


@pytest.fixture
def image_page(page, tmp_path):
    """The page with the attention of an image of 30 by 40 pixels."""
    displayed = page("namer")
    displayed.choose("input[type=file]", image(tmp_path, 30, 40))
    displayed.wait("!document.getElementById('run').disabled")
    run_model(displayed)
    assert wait_for_output(displayed) == "30 by 40"
    return displayed


def image(folder, height, width):
    file = folder / f"{height}.png"
    file.write_bytes(fake_tasks.png(height, width))
    return file


def test_an_image(image_page):
    assert image_page.run("document.querySelectorAll('#picture canvas').length") == 1
    assert "Attention for “30”" in image_page.text("#picture")


def test_a_new_image_does_not_change_the_displayed_attention(image_page, tmp_path):
    """The second image is loaded, but the model has not run."""
    size = "(({width, height}) => width / height)(document.querySelector('#picture canvas'))"
    assert image_page.run(size) == pytest.approx(40 / 30, abs=0.05)
    image_page.choose("input[type=file]", image(tmp_path, 10, 80))
    image_page.wait("document.querySelector('.drop span').innerText === '10.png'")
    image_page.run("document.querySelectorAll('#picture button.token')[1].click()")
    assert image_page.run(size) == pytest.approx(40 / 30, abs=0.05)
    run_model(image_page)
    image_page.wait("document.getElementById('hypothesis').innerText === '10 by 80'")
    assert image_page.run(size) == pytest.approx(80 / 10, abs=0.2)


def test_models_without_a_contract_and_unavailable_models(page):
    displayed = page("strange")
    assert "which describes its signatures" in displayed.text("#message")
    displayed = page("absent")
    assert "No version of model 'absent' is available." in displayed.text("#message")


def test_server_errors_are_shown(page):
    displayed = page("sorter", points="[[0.1,0.2]]")
    assert wait_for_output(displayed) == "0"
    run_model(displayed, "[[1e300, 0]]")
    displayed.wait("document.getElementById('message').classList.contains('error')")
    assert "out of the range of float32" in displayed.text("#message")
    displayed.log.clear()  # the browser logs the status 400


def test_light_and_dark(page):
    displayed = page("reverser")
    colour = "getComputedStyle(document.body).backgroundColor"
    before = displayed.run(colour)
    displayed.run("document.getElementById('theme').click()")
    after = displayed.run(colour)
    assert before != after
    assert page("reverser").run(colour) == after  # the theme is stored
    displayed.run("document.getElementById('theme').click()")


def test_every_control_has_an_accessible_name(page):
    displayed = page("reverser", source="ab")
    wait_for_output(displayed)
    nameless = displayed.run(
        "[...document.querySelectorAll('button, select, textarea, input, svg[role=img], canvas')]"
        ".filter((e) => !(e.innerText || e.getAttribute('aria-label') || e.labels?.length)).length"
    )
    assert nameless == 0


def test_files_have_a_strict_content_policy(server):
    base = f"http://127.0.0.1:{server.server.rest_port}"
    names = ("app.js", "attention.js", "style.css", "attention.css", "icon.svg", "models.json")
    for path in ("/", *(f"/page/{name}" for name in names)):
        result = httpx.get(base + path)
        assert result.status_code == 200
        policy = result.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert result.headers["x-content-type-options"] == "nosniff"
    for path in ("/page/none.js", "/page/..%2f__init__.py", "/page/__init__.py", "/page/"):
        assert httpx.get(base + path).status_code == 404
    assert httpx.get(base + "/v1/models/reverser").status_code == 200


def test_no_file_loads_external_resources():
    folder = Path(__file__).resolve().parents[3] / "serving" / "web" / "page"
    for file in folder.iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text
        assert "https://" not in text
        assert "innerHTML" not in text


def test_the_page_asks_for_the_token(page, server, tmp_path, monkeypatch):
    (tmp_path / "tokens").write_text("secret")
    tokens = BearerTokens(tmp_path / "tokens")
    monkeypatch.setattr(server.server._admission, "_tokens", tokens)
    opened = page("reverser")
    opened.run("void (window.prompt = () => 'secret')")
    opened.run("document.querySelector('textarea').focus()")
    opened.call("Input.insertText", text="abc")
    run_model(opened)
    assert wait_for_output(opened) == "CBA"
    opened.log.clear()  # the browser logs the first response, which has the status 401
