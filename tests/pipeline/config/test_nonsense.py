"""Fuzzing of configurations: every text is a configuration, or an error with file and line."""

import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.core.errors import UserError
from regard.pipeline.config import load
from regard.pipeline.runners.kubeflow.pipeline_file import read_pipeline
from tests.pipeline.config.test_bad_yaml import GOOD

THOROUGH = settings.get_current_profile_name() == "thorough"
MANY = settings(
    max_examples=5000 if THOROUGH else 200,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TAGS = ("bool", "int", "float", "null", "timestamp", "binary", "set", "omap", "map", "seq", "str")
SECTIONS = ("name", "data", "model", "training", "search", "beam", "tune", "evaluation", "schedule")
TOKENS = st.one_of(
    st.sampled_from([f"!!{tag} " for tag in TAGS]),
    st.sampled_from([f"{name}: " for name in SECTIONS]),
    st.sampled_from([*"[]{},:?-|>#%@`'\"&*", "&a ", "*a ", "<<: ", "\n", "\n  ", "\n- ", "\t"]),
    st.sampled_from(["${A}", "${", "$${", "type", "options: ", "space: ", "1e5", ".inf", "0x1f"]),
    st.sampled_from(["2001-01-01", "!<x> ", "--- ", "...", "%YAML 1.1\n", "\ufeff", "\x85", "\0"]),
    st.text(max_size=5),
)
TEXTS = st.lists(TOKENS, max_size=20).map("".join)


@MANY
@given(text=TEXTS, prefix=st.sampled_from(["", GOOD]))
def test_texts(tmp_path_factory, text, prefix):
    path = tmp_path_factory.getbasetemp() / "nonsense.yaml"
    path.write_bytes((prefix + text).encode("utf-8", "surrogatepass"))
    assert read_pipeline(path) is None
    try:
        assert load(path).name == "tiny"
    except UserError as error:
        message = str(error)
        assert re.match(rf"{re.escape(str(path))}(:\d+)?: ", message), message
