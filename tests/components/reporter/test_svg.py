from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from components.pictures import style
from components.reporter import attention, figures, page, svg

NAMES = {"s": "http://www.w3.org/2000/svg"}


@pytest.fixture
def pictures(facts):
    with style(page.DRAWING):
        drawn = figures.draw(facts, attention.measure(facts))
        return {picture.name: svg.inline(picture) for picture in drawn}


def test_each_mark_has_its_words(pictures):
    root = ET.fromstring(pictures["loss"])
    group = root.find(".//s:g[@id='loss-marks-train-loss']", NAMES)
    titles = [title.text for title in group.iterfind(".//s:use/s:title", NAMES)]
    assert len(titles) == 6
    assert titles[0] == "step 100: train 8.0000"
    bars = ET.fromstring(pictures["coverage"])
    first = bars.find(".//s:g[@id='coverage-bar-0']/s:path/s:title", NAMES)
    assert first.text == "0.00 to 0.15: 0%"


def test_pictures_on_one_page_do_not_share_identifiers(pictures):
    found = [re.findall(r'\bid="([^"]+)"', text) for text in pictures.values()]
    everything = [name for names in found for name in names]
    assert len(set(everything)) == len(everything)


def test_each_link_leads_to_a_part_of_the_same_picture(pictures):
    for text in pictures.values():
        own = set(re.findall(r'\bid="([^"]+)"', text))
        links = re.findall(r'href="#([^"]+)"', text) + re.findall(r"url\(#([^)]+)\)", text)
        assert links
        assert set(links) <= own


def test_the_colours_are_those_of_the_page(pictures):
    assert "var(--blue)" in pictures["loss"]
    assert "var(--orange)" in pictures["loss"]
    assert "var(--ink)" in pictures["loss"]
    assert not re.search(r"#[0-9a-fA-F]{6}\b", "".join(pictures.values()))


def test_text_stays_text_and_the_picture_has_an_alternative(pictures):
    root = ET.fromstring(pictures["by-length"])
    texts = ["".join(text.itertext()) for text in root.iterfind(".//s:text", NAMES)]
    assert "up to 10" in texts
    assert root.get("role") == "img"
    assert root.get("aria-label").startswith("BLEU by the length of the input")
    assert "width" not in root.attrib
