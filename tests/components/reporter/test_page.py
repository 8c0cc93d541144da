import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from regard.components.common.matplotlib_style import style
from regard.components.common.run_record import RunRecord
from regard.components.reporter import page, templates
from regard.components.reporter.attention_statistics import measure_attention
from regard.components.reporter.figures import draw_figures
from regard.components.reporter.run_facts import RunFacts
from regard.core.errors import Failure
from tests.components.reporter import sample_runs
from tests.pages import plain

_VOID = {"meta", "link", "img", "br", "input", "hr"}


class Tags(HTMLParser):
    """Collects all attributes, and asserts that elements are closed in order."""

    def __init__(self):
        super().__init__()
        self.attributes = []
        self.open = []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parse_attributes(text):
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    return tags.attributes


def test_missing_values_are_omitted(facts, tmp_path):
    with sample_runs.edit(tmp_path, "model_run", "training.json") as content:
        for key in (
            "target_tokens",
            "batch_tokens",
            "best_step",
            "average",
            "pretrained",
            "warm_start",
        ):
            del content[key]
    with sample_runs.edit(tmp_path, "evaluation", "metrics.json") as content:
        content["metrics"]["bleu"] |= {"value": None, "interval": None, "higher_is_better": False}
    text = plain(page.render(facts))
    assert "tokens seen" not in text
    assert "tokens per batch" not in text
    assert "BLEU lower is better undefined 30.00 0.012" in text


def test_the_unit_of_the_training(facts, tmp_path):
    assert "tokens seen 100,000" in plain(page.render(facts))
    with sample_runs.edit(tmp_path, "model_run", "training.json") as content:
        content["unit"] = "rows"
    text = plain(page.render(RunFacts(facts.run, facts.folders, facts.task, facts.config)))
    assert "rows seen 100,000" in text
    assert "Training speed, rows/s" in text
    assert "tokens/s" not in text


@pytest.fixture(scope="module")
def text_page(report_file):
    """The page of a text-to-text run."""
    return report_file("text").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", sample_runs.KINDS)
def test_ids_are_unique_and_resources_are_inside_the_page(report_file, kind):
    text = report_file(kind).read_text(encoding="utf-8")
    attributes = parse_attributes(text)
    names = [value for name, value in attributes if name == "id"]
    assert len(set(names)) == len(names)
    for name, value in attributes:
        if name in ("src", "href", "xlink:href"):
            assert re.match(r"#|data:", value), (name, value)
    assert "@import" not in text
    assert len(text) < 500_000


def test_html_in_the_data_is_escaped(text_page):
    assert "<img src=x" not in text_page
    assert "<b>" not in text_page
    assert sample_runs.HOSTILE in plain(text_page)
    assert "s <i> · (empty)" in plain(text_page)


def test_contents_of_the_page(text_page):
    text = plain(text_page)
    assert "tokens per batch at most 2,048 (auto)" in text
    for part in (
        "A Luong translation model",
        "BLEU 40.00 [39.00, 41.00] 30.00 +10.00, better 0.012 (randomization) of:bleu",
        "Passed: BLEU 40.0",
        "Scores by domain",
        "news 10 39.00 37.50",
        "rows sampled 20",
        "tokens with coverage below 0.2 0%",
        "other rows",
        "train.tsv:7 · a | b · same as train.tsv:3",
        "Drift from the data of version 1",
        "invalid rows, skipped: 2 train.tsv:9: 1 column, expected 2",
        "span 6, version 2 (20 of 90 rows replayed)",
        "span 7 (80 train)",
        "initial weights mine@1",
        "word frequencies (Jensen-Shannon divergence, 0 to 1) source 0.0456 0.03 failed neu",
        "max_epochs: 6",
        "regard run mine.yaml",
        "Trainer done 1:15 2.0 GiB",
        "train 100 90 6 4",
        "abcdef",
        "tensorflow 2.21.0",
    ):
        assert part in text, part


def test_scores_of_changed_inputs(facts, tmp_path):
    entry = {"kind": "upper_case", "rows": 1234, "metric": "bleu", "limit": 5.0}
    undefined = {**entry, "kind": "spaces", "limit": None}
    with sample_runs.edit(tmp_path, "evaluation", "metrics.json") as content:
        content["robustness"] = [
            {**entry, "scores": {"bleu": 31.5}, "losses": {"bleu": 8.5}},
            {**undefined, "scores": {"bleu": None}, "losses": {"bleu": None}},
        ]
    text = plain(page.render(facts))
    assert "upper case 1,234 31.50 (8.50) 5.00 BLEU, failed" in text
    assert "spaces 1,234 undefined (undefined)" in text


def test_the_page_begins_with_date_and_verdict(text_page):
    text = plain(text_page).partition(" Scores by ")[0]
    assert "2026-11-22 10:10 UTC · run 20261122-101010 Passed: BLEU 40.0" in text
    assert text.index("Passed:") < text.index("A Luong translation model")


def test_page_of_a_failed_run():
    failure = Failure(node="CorpusGen", error="No such file <x>", remedy="Fix it.")
    text = page.render(RunFacts(RunRecord(name="mine", failure=failure), {}, "translation"))
    parse_attributes(text)
    text = plain(text)
    assert "the run failed at CorpusGen" in text
    assert "No such file <x> Fix it." in text
    assert "Examples" not in text


@pytest.mark.parametrize("name", ["report", "differences"])
def test_scripts_are_bundled_into_one_module(name):
    script = templates.bundle_scripts(name)
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    names = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", script, re.MULTILINE)
    assert len(set(names)) == len(names)
    assert {"make", "drawAttention", "drawTokenWeights", "drawMap"} <= set(names)
    assert "</script" not in script


NAMESPACES = {"s": "http://www.w3.org/2000/svg"}


@pytest.fixture(scope="module")
def drawings(tmp_path_factory):
    """The SVG of each figure of a text-to-text run by name."""
    facts = sample_runs.text_run(tmp_path_factory.mktemp("drawings"))
    with style(page.DRAWING_STYLE):
        figures = draw_figures(facts, measure_attention(facts))
        return {figure.name: page.inline_svg(figure) for figure in figures}


def test_marks_have_tooltips(drawings):
    root = ET.fromstring(drawings["loss"])
    group = root.find(".//s:g[@id='loss-marks-train-loss']", NAMESPACES)
    titles = [title.text for title in group.iterfind(".//s:use/s:title", NAMESPACES)]
    assert len(titles) == 6
    assert titles[0] == "step 100: train 8.0000"
    bars = ET.fromstring(drawings["coverage"])
    first = bars.find(".//s:g[@id='coverage-bar-0']/s:path/s:title", NAMESPACES)
    assert first.text == "0.00 to 0.15: 0%"


def test_links_stay_within_their_figure(drawings):
    for text in drawings.values():
        ids = set(re.findall(r'\bid="([^"]+)"', text))
        links = re.findall(r'href="#([^"]+)"', text) + re.findall(r"url\(#([^)]+)\)", text)
        assert links
        assert set(links) <= ids


def test_figures_use_the_colours_of_the_theme(drawings):
    for name in ("blue", "orange", "ink"):
        assert f"var(--{name})" in drawings["loss"]
    assert not re.search(r"#[0-9a-fA-F]{6}\b", "".join(drawings.values()))


def test_figures_have_text_and_a_label(drawings):
    root = ET.fromstring(drawings["by-length"])
    texts = ["".join(text.itertext()) for text in root.iterfind(".//s:text", NAMESPACES)]
    assert "up to 10" in texts
    assert root.get("role") == "img"
    assert root.get("aria-label").startswith("BLEU by input length")
    assert "width" not in root.attrib
