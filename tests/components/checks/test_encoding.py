import gzip
import os
from pathlib import Path

import ftfy
import pytest

from regard.components.checks.encoding import fix_encoding
from tests.components.corpora import affected


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("das ist schÃ¶n", "das ist schön"),
        ("Stalloneâ€™s son", "Stallone’s son"),
        ("President‚Äôs message", "President’s message"),
        ("voilÃ  tout", "voilà tout"),
        ("Das ist schön, ÄÖÜ.", "Das ist schön, ÄÖÜ."),
        ("我有三個蘋果。", "我有三個蘋果。"),
        ("plain", "plain"),
    ],
)
def test_wrong_encoding(text, fixed):
    assert fix_encoding(text) == fixed
    assert affected([[text]], [], encoding={}) == ["encoding"] * (text != fixed)


@pytest.mark.skipif("REGARD_DATA" not in os.environ, reason="real corpora")
@pytest.mark.parametrize(
    "encoding", ["latin-1", "cp1252", "cp1250", "cp1251", "mac-roman", "cp437"]
)
def test_fast_test_misses_nothing_that_ftfy_fixes(encoding):
    path = Path(os.environ["REGARD_DATA"], "multi30k", "train.de.gz")
    fixes = 0
    for line in gzip.decompress(path.read_bytes()).decode().splitlines()[:3000]:
        broken = line.encode().decode(encoding, "replace")
        fixed = ftfy.fix_encoding(broken)
        assert fix_encoding(broken) == fixed
        fixes += fixed != broken
    assert fixes > 500
