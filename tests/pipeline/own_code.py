"""The modules and sections of ``docs/how-to/extending.md``: a node, a gate and a run_fn."""

import re
from pathlib import Path

_PAGE = Path(__file__).parents[2] / "docs/how-to/extending.md"


def write_modules(folder: Path) -> None:
    """Write the modules ``own_nodes``, ``own_gate`` and ``own_training``."""
    page = _PAGE.read_text(encoding="utf-8")
    modules = re.findall(r"```python\n# (own_\w+\.py)\n(.*?)```", page, re.S)
    assert len(modules) == 3
    for name, code in modules:
        (folder / name).write_text(code, encoding="utf-8")


def edit(path: Path, old: str, new: str) -> None:
    """Replace a text in a file."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


NODE = """
  nodes:
  - component: own_nodes:Profanity
    before: TokenizerTrainer
    inputs: {examples: CorpusGen.examples}
    parameters: {limit: 5}
"""
PIPELINE = f"pipeline:{NODE}  extra: own_gate:extra\n"
