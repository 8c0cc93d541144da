import io

import pytest
from rich.console import Console

from regard.pipeline.cli.rendering.run_summary import print_summary


@pytest.mark.parametrize("is_blessed", [True, False])
def test_a_model_that_was_published_in_spite_of_the_gate(is_blessed):
    console = Console(file=io.StringIO(), width=120)
    blessing = {"blessed": is_blessed, "sentence": "BLEU 1.0 against a threshold of 2.0."}
    print_summary({"blessing": blessing, "pushed": {"version": "3", "path": "/r/3"}}, console)
    (line,) = [line for line in console.file.getvalue().splitlines() if "/r/3" in line]
    assert ("--publish-anyway" in line) is not is_blessed
