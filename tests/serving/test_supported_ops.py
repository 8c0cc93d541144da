from __future__ import annotations

import subprocess
import sys

import pytest

from regard.serving import supported_ops


def test_lists_grow_with_the_servers():
    sizes = [
        len(supported_ops.text_ops(server)) for server in ("2.6.2", "2.14.1", "2.19", "2.20.0")
    ]
    assert sizes == [22, 37, 37, 38]
    assert (
        supported_ops.text_ops("2.6.2")
        < supported_ops.text_ops("2.19")
        < supported_ops.text_ops("2.20")
    )
    assert "SentencepieceTokenizeOp" in supported_ops.text_ops("2.6.2")
    assert "TFText>Utf8Binarize" not in supported_ops.text_ops("2.19")


def test_between_known_servers_the_older_list_holds():
    assert supported_ops.text_ops("2.11") == supported_ops.text_ops("2.6.2")


@pytest.mark.parametrize("server", ["2.5", "2.21", "3.0", "1.15", "latest", "2", ""])
def test_unknown_servers_are_refused(server):
    with pytest.raises(ValueError, match=r"not known\. Use 2\.6 to 2\.20"):
        supported_ops.text_ops(server)


def test_unsupported():
    used = {"MatMul", "SentencepieceTokenizeOp", "TFText>RoundRobinTrim", "Addons>GatherTree"}
    assert supported_ops.unsupported(used, {"MatMul"}, "2.19") == ["Addons>GatherTree"]
    assert supported_ops.unsupported(used, {"MatMul"}, "2.6.2") == [
        "Addons>GatherTree",
        "TFText>RoundRobinTrim",
    ]


def test_operations_of_a_later_tensorflow_are_not_in_an_older_server():
    core = {"MatMul", "DisableCopyOnRead"}
    assert supported_ops.unsupported(core, core, "2.6.2") == ["DisableCopyOnRead"]
    assert supported_ops.unsupported(core, core, "2.11") == []
    later = [
        len(supported_ops.later_core_ops(server))
        for server in ("2.6", "2.11", "2.14", "2.19", "2.20")
    ]
    assert later == [146, 80, 52, 10, 1]


def test_importing_it_imports_nothing():
    code = "import sys, regard.serving.supported_ops; "
    code += "print('tensorflow' in sys.modules or 'numpy' in sys.modules)"
    completed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert completed.stdout.strip() == "False"
