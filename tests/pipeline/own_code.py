"""The modules and sections of ``docs/how-to/extending.md``: a node, a gate and a run_fn.

``FUNCTIONS`` is a module with other components, most of which have a mistake.
"""

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

FUNCTIONS = """
import time
from typing import Dict, List, Optional
from tfx.dsl.component.experimental.annotations import Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.components import StatisticsGen

@component
def Typed(
    share: Parameter[float],
    sizes: Parameter[Dict[str, List[float]]],
    name: Parameter[str] = "",
):
    pass

@component
def Reserved(own_code: Parameter[str] = ""):
    pass

class Abstract(BaseComponent):
    pass

class Bare(StatisticsGen):
    def __init__(self):
        pass

class Unnamed(StatisticsGen):
    def with_id(self, name):
        return None

class Misnamed(StatisticsGen):
    def with_id(self, name):
        return self

class Signed(StatisticsGen):
    __signature__ = "examples"

@component
def Counting(number: Parameter[int] = 1):
    pass

class CountingClass(BaseComponent):
    SPEC_CLASS = Counting.SPEC_CLASS
    EXECUTOR_SPEC = StatisticsGen.EXECUTOR_SPEC

    def __init__(self, factor=1):
        super().__init__(spec=self.SPEC_CLASS(number=factor * 2**32))

class Silent(StatisticsGen):
    def __init__(self, examples, *rest, limits=()):
        limits.pop()
        raise ValueError
"""
