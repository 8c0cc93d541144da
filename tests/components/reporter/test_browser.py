"""The report in a real browser, from a local file."""

import os
from pathlib import Path

import pytest

from regard.components.reporter import page
from tests import browser
from tests.components.reporter import sample_runs

# A folder for screenshots, to check by eye; none by default.
SCREENSHOTS = os.environ.get("REGARD_TEST_PICTURES")


@pytest.fixture
def open_page(chromium, report_file, request):
    """Opens the report of a sample run, or a file; the browser must not log any error."""

    def set_size(width, height):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        chromium.call("Emulation.setDeviceMetricsOverride", **size)

    def open_report(kind="text", width=1440, file=None):
        set_size(width, 1000)
        chromium.open((file or report_file(kind)).as_uri())
        return chromium

    chromium.log.clear()
    yield open_report
    if SCREENSHOTS:
        height = chromium.run("document.documentElement.scrollHeight")
        width = chromium.run("innerWidth")
        set_size(width, height)
        chromium.screenshot(Path(SCREENSHOTS, f"{request.node.name}.png"))
    assert chromium.log == []


@pytest.mark.parametrize("width", [390, 820, 1440])
@pytest.mark.parametrize("kind", sample_runs.KINDS)
def test_the_page_fits_and_requests_nothing(open_page, kind, width):
    report = open_page(kind, width)
    assert report.run("performance.getEntriesByType('resource').length") == 0
    assert report.run("document.documentElement.scrollWidth") <= width
    outside = (
        "[...document.querySelectorAll('main *')].filter((e) => !e.closest('.scroll, .map, .grids, "
        f"pre, svg, .hidden') && e.getBoundingClientRect().right > {width}).length"
    )
    assert report.run(outside) == 0


def test_many_metrics_do_not_widen_the_page(open_page, facts, tmp_path):
    """Slices are next to a figure if there is room."""
    with sample_runs.edit(tmp_path, "evaluation", "metrics.json") as content:
        for number in range(8):
            name = f"a_long_name_{number}"
            content["metrics"][name] = sample_runs.metric(name, 10.0)
    file = tmp_path / "report.html"
    file.write_text(page.render(facts), encoding="utf-8")
    report = open_page(width=1000, file=file)
    assert report.run("document.documentElement.scrollWidth") <= 1000


def test_hovering_shows_attention(open_page):
    report = open_page()
    caption = "document.querySelector('.attention[open] [aria-live]').textContent"
    assert report.run(caption).startswith("“A” → a 80%")
    box = report.run(
        "(() => { const piece = document.querySelectorAll('.attention[open] button.token')[1];"
        " piece.scrollIntoView({ block: 'center' }); const box = piece.getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    report.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
    report.wait(f"{caption}.startsWith('“</s>” →')")
    highlight = (
        "document.querySelectorAll('.attention[open] .tokens')[1].querySelector('.token')"
        ".style.backgroundColor"
    )
    assert "color-mix" in report.run(highlight)


def test_a_tap_on_the_map_selects_its_row(open_page):
    report = open_page(width=390)
    report.run(
        "[...document.querySelectorAll('.attention[open] .map rect[fill-opacity]')].at(-1)"
        ".dispatchEvent(new Event('click'))"
    )
    caption = "document.querySelector('.attention[open] [aria-live]').textContent"
    assert report.run(caption).startswith("“</s>” →")


def test_a_wide_table_can_be_scrolled_with_the_keyboard(open_page):
    scrollable = "[...document.querySelectorAll('.scroll')].map((one) => one.tabIndex === 0)"
    assert open_page(width=390).wait(f"{scrollable}[0]")
    assert not any(open_page(width=1440).run(scrollable))


def test_attention_is_drawn_on_demand(open_page):
    report = open_page()
    second = "document.querySelectorAll('details.attention')[1]"
    assert report.run(f"{second}.childElementCount") == 1
    report.run(f"{second}.open = true")
    report.wait(f"{second}.childElementCount === 2")
    assert report.run(f"{second}.querySelectorAll('.map rect').length") > 4


def test_attention_of_points_and_images(open_page):
    report = open_page("points")
    report.wait("document.querySelectorAll('.plane line').length === 3")
    report = open_page("image")
    report.wait("document.querySelector('.over-image canvas') !== null")
    assert "Attention for “c”" in report.run(
        "document.querySelector('.over-image canvas').getAttribute('aria-label')"
    )


def test_figures_and_images_have_a_text_alternative(open_page):
    report = open_page("image")
    unlabelled = (
        "[...document.querySelectorAll('figure svg, img, canvas')].filter((e) =>"
        " !(e.getAttribute('aria-label') || e.getAttribute('alt'))).length"
    )
    assert report.run(unlabelled) == 0
    assert report.run(
        "[...document.querySelectorAll('figure')].every((f) => f.querySelector('table tbody tr'))"
    )
    assert report.run("[...document.querySelectorAll('table')].every((t) => t.caption)")


@pytest.mark.skipif(not browser.AXE, reason="REGARD_AXE does not name axe-core")
@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", sample_runs.KINDS)
def test_axe_finds_nothing_serious(open_page, kind, theme, width):
    report = open_page(kind, width)
    report.run(f"document.documentElement.dataset.theme = '{theme}'")
    report.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert report.violations() == []


def test_light_and_dark_theme(open_page):
    report = open_page()
    paper = "getComputedStyle(document.body).backgroundColor"
    line = "getComputedStyle(document.querySelector('#loss-marks-train-loss path')).stroke"
    report.run("document.documentElement.dataset.theme = 'light'")
    before = report.run(paper), report.run(line)
    report.run("document.getElementById('theme').click()")
    after = report.run(paper), report.run(line)
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_all_examples_are_open_in_print(open_page):
    report = open_page()
    opened = "[...document.querySelectorAll('details.group')].map((d) => d.open)"
    assert report.run(opened) == [True, False, False]
    report.call("Page.printToPDF")
    report.wait(f"{opened}.every(Boolean)")
