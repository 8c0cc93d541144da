"""The report in a real browser, from the disk: nothing is asked for, all is drawn and readable."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from components.reporter import page
from tests.components.reporter import runs

# Where pictures of what the tests saw go, to be looked at; nowhere by default.
PICTURES = os.environ.get("REGARD_TEST_PICTURES")


@pytest.fixture
def shown(chromium, tmp_path, request):
    """Opens the report of a run of some kind at a width; nothing may be complained of."""

    def open_report(kind="text", width=1440):
        file = tmp_path / "report.html"
        file.write_text(page.render(runs.KINDS[kind](tmp_path / "run")), encoding="utf-8")
        chromium.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=1000, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        chromium.open(file.as_uri())
        return chromium

    chromium.log.clear()
    yield open_report
    if PICTURES:
        height = chromium.run("document.documentElement.scrollHeight")
        width = chromium.run("innerWidth")
        chromium.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        chromium.screenshot(Path(PICTURES, f"{request.node.name}.png"))
    assert chromium.log == []


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("kind", runs.KINDS)
def test_nothing_is_fetched_and_nothing_sticks_out(shown, kind, width):
    report = shown(kind, width)
    assert report.run("performance.getEntriesByType('resource').length") == 0
    assert report.run("document.documentElement.scrollWidth") <= width
    outside = (
        "[...document.querySelectorAll('main *')].filter((e) => !e.closest('.wide, .map, .grids, "
        f"pre, svg, .hidden') && e.getBoundingClientRect().right > {width}).length"
    )
    assert report.run(outside) == 0


def test_many_metrics_do_not_push_the_page_out(shown, tmp_path, monkeypatch):
    """Slices stand beside a picture where there is room for it."""
    many = {f"m{n}": runs.metric(f"a_long_name_{n}", 10.0) for n in range(8)}
    written = runs.put

    def put(root, artifact, file, content):
        if file == "metrics.json":
            content = {**content, "metrics": content["metrics"] | many}
        written(root, artifact, file, content)

    monkeypatch.setattr(runs, "put", put)
    report = shown("text", 1000)
    assert report.run("document.documentElement.scrollWidth") <= 1000


def test_hovering_shows_where_it_looked(shown):
    report = shown()
    caption = "document.querySelector('.look[open] [aria-live]').textContent"
    assert report.run(caption).startswith("“A” looked at a 80%")
    box = report.run(
        "(() => { const piece = document.querySelectorAll('.look[open] button.piece')[1];"
        " piece.scrollIntoView({ block: 'center' }); const box = piece.getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    report.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
    report.wait(f"{caption}.startsWith('“</s>” looked at')")
    lit = "document.querySelectorAll('.look[open] .pieces')[1].children[0].style.backgroundColor"
    assert "color-mix" in report.run(lit)


def test_a_look_is_drawn_when_it_is_opened(shown):
    report = shown()
    second = "document.querySelectorAll('details.look')[1]"
    assert report.run(f"{second}.childElementCount") == 1
    report.run(f"{second}.open = true")
    report.wait(f"{second}.childElementCount === 2")
    assert report.run(f"{second}.querySelectorAll('.map rect').length") > 4


def test_points_are_joined_and_images_lit(shown):
    report = shown("points")
    report.wait("document.querySelectorAll('.plane line').length === 3")
    report = shown("image")
    report.wait("document.querySelector('.over-image canvas') !== null")
    assert "Where it looked for c" in report.run(
        "document.querySelector('.over-image canvas').getAttribute('aria-label')"
    )


def test_every_picture_has_a_text_in_its_place(shown):
    report = shown("image")
    unnamed = (
        "[...document.querySelectorAll('figure svg, img, canvas')].filter((e) =>"
        " !(e.getAttribute('aria-label') || e.getAttribute('alt'))).length"
    )
    assert report.run(unnamed) == 0
    assert report.run(
        "[...document.querySelectorAll('figure')].every((f) => f.querySelector('table tbody tr'))"
    )
    assert report.run("[...document.querySelectorAll('table')].every((t) => t.caption)")


def test_light_and_dark(shown):
    report = shown()
    paper = "getComputedStyle(document.body).backgroundColor"
    line = "getComputedStyle(document.querySelector('#loss-marks-train-loss path')).stroke"
    report.run("document.documentElement.dataset.theme = 'light'")
    before = report.run(paper), report.run(line)
    report.run("document.getElementById('theme').click()")
    after = report.run(paper), report.run(line)
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_on_paper_all_examples_are_open(shown):
    report = shown()
    opened = "[...document.querySelectorAll('details.group')].map((d) => d.open)"
    assert report.run(opened) == [True, False, False]
    report.call("Page.printToPDF")
    report.wait(f"{opened}.every(Boolean)")
