import pytest

from regard.serving import supported_ops


def test_lists_grow_with_the_servers():
    oldest, *others, newest = map(supported_ops.text_ops, ("2.6.2", "2.14.1", "2.19", "2.20.0"))
    assert [len(ops) for ops in (oldest, *others, newest)] == [22, 37, 37, 38]
    assert oldest < others[0] == others[1] < newest
    assert "SentencepieceTokenizeOp" in oldest
    assert "TFText>Utf8Binarize" not in others[1]


def test_between_known_servers_the_older_list_holds():
    assert supported_ops.text_ops("2.11") == supported_ops.text_ops("2.6.2")


@pytest.mark.parametrize("server", ["2.5", "2.21", "3.0", "1.15", "latest", "2", ""])
def test_unknown_servers_are_refused(server):
    with pytest.raises(ValueError, match=r"not known\. Use 2\.6 to 2\.20"):
        supported_ops.text_ops(server)


def test_unsupported():
    used = {"MatMul", "SentencepieceTokenizeOp", "TFText>RoundRobinTrim", "Addons>GatherTree"}
    assert supported_ops.unsupported(used, {"MatMul"}, "2.19") == ["Addons>GatherTree"]
    older = supported_ops.unsupported(used, {"MatMul"}, "2.6.2")
    assert older == ["Addons>GatherTree", "TFText>RoundRobinTrim"]


def test_operations_of_a_later_tensorflow_are_not_in_an_older_server():
    core = {"MatMul", "DisableCopyOnRead"}
    assert supported_ops.unsupported(core, core, "2.6.2") == ["DisableCopyOnRead"]
    assert supported_ops.unsupported(core, core, "2.11") == []
    later = map(supported_ops.later_core_ops, ("2.6", "2.11", "2.14", "2.19", "2.20"))
    assert [len(ops) for ops in later] == [146, 80, 52, 10, 1]
