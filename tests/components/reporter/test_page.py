from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from components.reporter import page
from components.reporter.facts import About, Facts
from tests.components.reporter import runs
from tests.pages import plain

_VOID = {"meta", "link", "img", "br", "input", "hr"}


class Tags(HTMLParser):
    """All attributes, and whether every element is closed where it should be."""

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


def parsed(text):
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    return tags.attributes


@pytest.mark.parametrize("kind", runs.KINDS)
def test_no_two_parts_of_a_page_have_one_name(tmp_path, kind):
    text = page.render(runs.KINDS[kind](tmp_path))
    names = [value for name, value in parsed(text) if name == "id"]
    assert len(set(names)) == len(names)


def test_what_older_runs_do_not_say_is_left_out(facts, tmp_path):
    content = json.loads((tmp_path / "model_run" / "training.json").read_text())
    for key in ("target_tokens", "best_step", "averaged", "pretrained", "warm_start"):
        del content[key]
    runs.put(tmp_path, "model_run", "training.json", content)
    content = json.loads((tmp_path / "evaluation" / "metrics.json").read_text())
    content["metrics"]["bleu"] |= {"value": None, "interval": None, "higher_is_better": False}
    runs.put(tmp_path, "evaluation", "metrics.json", content)
    told = plain(page.render(facts))
    assert "units trained on" not in told
    assert "BLEU lower is better undefined 30.00 0.012" in told


@pytest.mark.parametrize("kind", runs.KINDS)
def test_a_page_needs_nothing_else(tmp_path, kind):
    text = page.render(runs.KINDS[kind](tmp_path))
    for name, value in parsed(text):
        if name in ("src", "href", "xlink:href"):
            assert re.match(r"#|data:", value), (name, value)
    assert "@import" not in text
    assert len(text) < 500_000


def test_texts_of_the_data_stay_texts(tmp_path):
    text = page.render(runs.text_run(tmp_path))
    assert "<img src=x" not in text
    assert "<b>" not in text
    assert runs.HOSTILE in plain(text)
    assert "s <i> · (nothing)" in plain(text)


def test_the_page_tells_of_all(facts):
    told = plain(page.render(facts))
    for part in (
        "A Luong translation model",
        "BLEU 40.00 39.00 to 41.00 30.00 +10.00, better 0.012 (randomization) of:bleu",
        "Blessed: BLEU 40.0",
        "By domain",
        "everything else",
        "train.tsv:7 · a | b · as train.tsv:3",
        "Beside the data of version 1",
        "bad rows, left out: 2 train.tsv:9: 1 column, expected 2",
        "span 6, version 2 (20 of 90 rows replayed)",
        "span 7 (80 train)",
        "started from the weights of mine@1",
        "words: divergence, 0 to 1 source 0.0456 0.03 refused neu",
        "max_epochs: 6",
        "regard run mine.yaml",
        "Trainer done 1 min 15 s 2.0 GiB",
        "train 100 90 6 4",
        "abcdef",
        "tensorflow 2.21.0",
    ):
        assert part in told, part


def test_a_run_that_failed_says_why():
    failure = {"node": "CorpusGen", "error": "no such file <x>", "remedy": "Mend it."}
    text = page.render(Facts(About("mine", "translation", {}, failure=failure), {}))
    parsed(text)
    told = plain(text)
    assert "the run failed at CorpusGen" in told
    assert "no such file <x> Mend it." in told
    assert "Examples" not in told


def test_the_scripts_are_one_module():
    script = page.script()
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    names = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", script, re.MULTILINE)
    assert len(set(names)) == len(names)
    assert {"make", "picture", "shares", "look"} <= set(names)
    assert "</script" not in script
