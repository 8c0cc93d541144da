"""The documentation site: its navigation, its maps of attention, and the excerpts of its search."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import browser
from tests.test_docs import PAGES, text

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
MAPS = sorted(DOCS.glob("maps/*.json"))
_OBJECT = re.compile(r"python\.md#(regard\.[\w.]+)")


@pytest.fixture(scope="module")
def site_module():
    """Imports a module of docs/, which need Sphinx."""
    pytest.importorskip("sphinx")
    pytest.importorskip("bs4")
    sys.path.insert(0, str(DOCS))
    yield importlib.import_module
    sys.path.remove(str(DOCS))


def test_the_start_page_lists_every_page_once():
    listed = re.findall(r"\]\(([^)#]+)\)", text("docs/index.md").partition("## All pages")[2])
    files = [(DOCS / link).resolve().relative_to(ROOT).as_posix() for link in listed]
    notebooks = [path.relative_to(ROOT).as_posix() for path in DOCS.glob("*.ipynb")]
    assert sorted(files) == sorted({*PAGES, *notebooks} - {"README.md", "docs/index.md"})


def test_the_list_of_pages_becomes_the_navigation(site_module):
    source = "# Start\n\n## All pages\n\n### Lessons\n\n[One](a/one.md) · [Two](../two.ipynb)\n"
    lines = site_module("site_pages").replace_list(source).splitlines()
    assert lines[0] == "# Start"
    assert [line for line in lines if "<" in line] == ["One <a/one>", "Two <../two>"]
    assert ":caption: Lessons" in lines
    assert "## All pages" not in lines


def test_only_the_group_of_the_current_page_is_open(site_module):
    tree = "".join(
        f'<p class="caption"><span>{name}</span></p><ul class="{kind}"><li>{name} page</li></ul>'
        for name, kind in (("First", ""), ("Second", "current"))
    )
    groups = re.findall(r"<details(.*?)>(.*?)</details>", site_module("site_pages").fold(tree))
    assert [bool(attributes) for attributes, _ in groups] == [False, True]
    assert all(
        f"<summary>{name}</summary>" in group
        for name, (_, group) in zip(("First", "Second"), groups, strict=True)
    )
    assert "Second page" in groups[1][1]


@pytest.mark.parametrize("page", [page for page in PAGES if _OBJECT.search(text(page))])
def test_every_linked_object_exists(page):
    for name in _OBJECT.findall(text(page)):
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


@pytest.mark.parametrize("file", MAPS, ids=lambda file: file.stem)
def test_maps_have_a_picture_and_complete_data(file):
    assert file.with_suffix(".png").stat().st_size < 150_000
    content = json.loads(file.read_text(encoding="utf-8"))
    looks, outputs = content["contract"]["looks"], content["outputs"]
    weights, rows = outputs[looks["weights"]], outputs[looks["rows"]]
    assert len(weights) == len(rows)
    columns = outputs.get(looks["columns"]) or content["inputs"][looks["columns"]]
    if not content["images"]:
        assert {len(row) for row in weights} == {len(columns)}
    pages = "".join(text(page) for page in PAGES)
    assert f"maps/{file.stem}.png" in pages


@pytest.mark.parametrize("formula", [r"\tilde h_t", r"\bar{h}_t", r"\overleftarrow{h}_t"])
def test_the_subscript_of_a_letter_with_an_accent_is_next_to_it(site_module, formula):
    mathml = site_module("site_math").to_mathml(formula)
    assert "<msub>" in mathml
    assert "munder" not in mathml
    assert "<munderover>" in site_module("site_math").to_mathml(r"\sum_{s}^{S} a_s", True)


FUNCTIONS = '''\
def softmax(z):
    """Return weights."""
    return z / z.sum()


class Layer:
    @property
    def width(self):
        return 3
'''


def test_a_paragraph_of_one_link_to_functions_becomes_a_directive(site_module):
    replace = site_module("site_code").replace_links
    page = "# A\n\n[NumPy `f`](../a.py#f,C.g)\n\nText\n"
    expected = "# A\n\n~~~{site-code} ../a.py#f,C.g NumPy `f`\n~~~\nText\n"
    assert replace(page) == expected
    unchanged = [
        "Text with [a link](a.py#f) inside.\n",
        "[A link](a.py#f)\nin a paragraph of two lines.\n",
        "Text\n[a link](a.py#f)\n",
        "[A file](a.py)\n",
        "```\n\n[In code](a.py#f)\n\n```\n",
        "~~~markdown\n```\n\n[In code](a.py#f)\n\n~~~\n",
    ]
    for each in unchanged:
        assert replace(each) == each


def test_the_source_of_functions_and_methods(site_module):
    source_of = site_module("site_code").source_of
    assert source_of(FUNCTIONS, "softmax") == FUNCTIONS.partition("\n\n\n")[0]
    assert source_of(FUNCTIONS, "Layer.width") == "@property\ndef width(self):\n    return 3"
    for name in ("width", "Layer.depth", "np"):
        with pytest.raises(KeyError):
            source_of(FUNCTIONS, name)


@pytest.fixture
def build_page(tmp_path):
    """Builds a site of one page next to a file of functions, and returns the process."""
    pytest.importorskip("myst_parser")
    path = [str(ROOT), str(DOCS)]
    configuration = f"import sys; sys.path[:0] = {path}; extensions = ['myst_parser', 'site_code']"
    (tmp_path / "conf.py").write_text(configuration, encoding="utf-8")
    (tmp_path / "functions.py").write_text(FUNCTIONS, encoding="utf-8")

    def build(content):
        (tmp_path / "index.md").write_text(content, encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "sphinx",
            "-q",
            "-W",
            str(tmp_path),
            str(tmp_path / "site"),
        ]
        return subprocess.run(command, capture_output=True, text=True)

    return build


def test_a_link_to_functions_shows_their_source(build_page, tmp_path):
    page = "# Start\n\n[NumPy: *both*](functions.py#Layer.width,softmax)\n\nEnd.\n"
    assert build_page(page).returncode == 0
    bs4 = pytest.importorskip("bs4")
    html = (tmp_path / "site/index.html").read_text(encoding="utf-8")
    block = bs4.BeautifulSoup(html, "html.parser").find(class_="literal-block-wrapper")
    caption = block.find(class_="caption-text")
    assert caption.get_text() == "NumPy: both, from functions.py"
    download = tmp_path / "site" / caption.find("a")["href"]
    assert download.read_text(encoding="utf-8") == FUNCTIONS
    code = block.find(class_="highlight-python").get_text().strip()
    softmax = FUNCTIONS.partition("\n\n\n")[0]
    assert code == f"@property\ndef width(self):\n    return 3\n\n\n{softmax}"


@pytest.mark.parametrize("link", ["functions.py#unknown", "other.py#softmax"])
def test_a_link_to_an_unknown_function_fails_the_build(build_page, link):
    result = build_page(f"# Start\n\n[NumPy](functions.py#softmax)\n\n[NumPy]({link})\n")
    assert result.returncode != 0
    assert f"index.md:5: WARNING: index: the link {link} names" in result.stderr


@pytest.fixture(scope="module")
def small_site(tmp_path_factory):
    """A site of two pages with the extensions of the documentation."""
    pytest.importorskip("furo")
    pytest.importorskip("myst_parser")
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    configuration = [
        f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(DOCS)!r}]",
        "extensions = ['myst_parser', 'site_maps', 'site_search']",
        f"html_theme, html_static_path = 'furo', [{str(DOCS / '_static')!r}]",
        "html_css_files, html_show_search_summary = ['site.css'], False",
    ]
    (source / "conf.py").write_text("\n".join(configuration), encoding="utf-8")
    for suffix in (".json", ".png"):
        (source / f"map{suffix}").write_bytes((DOCS / f"maps/general{suffix}").read_bytes())
    pages = {
        "index": "# Start\n\n```{toctree}\nother\n```\n\n![A date & its map](map.png)\n",
        "other": "# Other\n\nSome text.\n\n## Sparse weights\n\nMost alignments are dense, but a"
        " zebra <b>aligns</b> with few positions.\n",
    }
    for name, content in pages.items():
        (source / f"{name}.md").write_text(content, encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", str(source), str(site)]
    subprocess.run(command, check=True, capture_output=True)
    return site


@pytest.mark.skipif(browser.path() is None, reason="no Chromium")
def test_a_picture_becomes_a_map_without_a_server(chromium, small_site):
    chromium.log.clear()
    chromium.open((small_site / "index.html").as_uri())
    chromium.wait("document.querySelectorAll('.attention-viewer .map rect').length > 20")
    assert chromium.run("document.querySelector('.attention-viewer img')") is None
    assert chromium.text(".attention-viewer figcaption") == "A date & its map"
    caption = "document.querySelector('.attention-viewer [aria-live]').textContent"
    before = chromium.run(caption)
    chromium.run("document.querySelectorAll('.attention-viewer button.token')[6].click()")
    assert chromium.run(caption) != before
    assert chromium.log == []


@pytest.mark.skipif(browser.path() is None, reason="no Chromium")
def test_results_of_the_search_have_excerpts_without_a_server(chromium, small_site):
    chromium.log.clear()
    chromium.open((small_site / "search.html").as_uri() + "?q=zebra+alignment")
    chromium.wait("document.querySelector('#search-results .excerpt') !== null")
    assert chromium.run(
        "[...document.querySelectorAll('#search-results .excerpt mark')].map((e) => e.textContent)"
    ) == ["alignments", "zebra", "aligns"]
    assert "zebra <b>aligns</b>" not in chromium.run("document.body.innerHTML")
    links = "[...document.querySelectorAll('#search-results li a')].map((e) => e.textContent)"
    assert chromium.run(links) == ["Other", "Sparse weights"]
    assert chromium.log == []


@pytest.mark.skipif(not browser.AXE, reason="REGARD_AXE does not name axe-core")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", ["index.html", "search.html?q=zebra"])
def test_axe_finds_nothing_serious(chromium, small_site, page, theme):
    chromium.open(f"{small_site.as_uri()}/{page}")
    chromium.run(f"document.body.dataset.theme = '{theme}'")
    assert chromium.violations() == []
