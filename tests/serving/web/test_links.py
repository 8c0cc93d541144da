"""Links to a view of the page, and the tag of a text, which is a part of it."""

import urllib.parse

from tests.serving.web.conftest import run_model, wait_for_output


def test_a_link_runs_the_model(page):
    displayed = page("reverser", source="hello")
    assert wait_for_output(displayed) == "OLLEH"
    displayed.run("document.getElementById('link').click()")
    link = "model=reverser&version=1&source=hello"
    assert displayed.wait("location.hash.slice(1)") == link


def test_a_link_shows_the_same_view(page):
    view = {"source": "abc", "open": "heads", "token": "2", "head": "5"}
    displayed = page("heads", version="9", **view)
    displayed.wait("document.getElementById('message').innerText.includes('made with version 9')")
    pressed = "[...document.querySelectorAll('[aria-pressed=true]')].map((b) => b.ariaLabel)"
    assert displayed.run(f"{pressed}[0]") == "A: a 100%"
    assert "layer 2, head 2" in displayed.run(pressed)
    displayed.run("document.getElementById('link').click()")
    link = dict(urllib.parse.parse_qsl(displayed.wait("location.hash.slice(1)")))
    assert link == {"model": "heads", "version": "1", **view}


def test_a_link_does_not_send_a_long_text(page):
    displayed = page("reverser", source="a" * 2001)
    displayed.wait("document.getElementById('message').innerText.includes('Select Run')")
    assert displayed.run("document.getElementById('output').hidden") is True
    assert len(displayed.run("document.querySelector('textarea').value")) == 2001
    run_model(displayed)
    assert wait_for_output(displayed) == "A" * 100


def test_a_link_in_the_same_tab_and_the_back_button(page):
    displayed = page("reverser", source="abc", token="forEach", open="model", head="item")
    assert wait_for_output(displayed) == "CBA"
    displayed.run("void (location.hash = 'model=constrained&source=xy&prefix=P')")
    displayed.wait("document.getElementById('hypothesis').innerText === 'P|YX|'")
    displayed.run("history.back()")
    displayed.wait("document.getElementById('hypothesis').innerText === 'CBA'")
    assert displayed.run("document.getElementById('model').value") == "reverser"


REPLACED = """((real) => { window.fetch = async (path, options) => {
  const gone = path.includes("/versions/1:");
  if (gone) return new Response('{"error": "No version 1"}', {status: 404});
  const response = await real(path.replace("/versions/2:", "/versions/1:"), options);
  if (!path.endsWith("models.json")) return response;
  const listed = (await response.json()).map((one) => ({...one, version: one.version && 2}));
  return new Response(JSON.stringify(listed));
}; })(window.fetch)"""


def test_an_open_page_finds_the_version_that_has_replaced_its_own(page):
    displayed = page("reverser", source="abc")
    assert wait_for_output(displayed) == "CBA"
    displayed.run(REPLACED)
    run_model(displayed, "de")
    displayed.wait("document.getElementById('hypothesis').innerText === 'ED'")
    displayed.wait("document.getElementById('message').innerText.includes('Version 2')")
    assert displayed.run("document.querySelector('#model option:checked').innerText") == (
        "reverser · version 2"
    )


def test_the_version_of_a_link_does_not_hide_an_error(page):
    displayed = page("tagged", version="9", source="<fr> a <de>")
    displayed.wait("document.querySelector('#message.error') !== null")
    assert "version" not in displayed.text("#message")


def test_a_tag_begins_the_text(page):
    displayed = page("tagged")
    tags = "[...document.querySelectorAll('#inputs option')].map((one) => one.innerText)"
    assert displayed.run(tags) == ["de", "fr"]
    assert "The tag selects" in displayed.text("#about")
    run_model(displayed, " ")
    assert displayed.run("document.getElementById('run').disabled") is True
    run_model(displayed, "abc")
    assert wait_for_output(displayed) == "CBA >ED<"
    displayed.run(
        "(select => { select.value = 'fr'; select.dispatchEvent(new Event('change')); })"
        "(document.querySelector('#inputs select'))"
    )
    run_model(displayed)
    displayed.wait("document.getElementById('hypothesis').innerText === 'CBA >RF<'")
    displayed.run("document.getElementById('link').click()")
    link = "model=tagged&version=1&source=%3Cfr%3E+abc"
    assert displayed.wait("location.hash.slice(1)") == link
    for text in ("a <DE>", "a ＜fr＞"):
        run_model(displayed, text)
        assert "The text contains the tag" in displayed.text("#message")
    assert displayed.text("#hypothesis") == "CBA >RF<"


def test_links_and_examples_select_the_tag(page):
    values = "['select', 'textarea'].map((one) => document.querySelector('#inputs ' + one).value)"
    displayed = page("tagged", source="<fr> abc")
    assert wait_for_output(displayed) == "CBA >RF<"
    assert displayed.run(values) == ["fr", "abc"]
    displayed = page("tagged")
    displayed.run("document.querySelector('.example').click()")
    assert wait_for_output(displayed) == "BA >RF<"
    assert displayed.run(values) == ["fr", "ab"]
