"""Sessions: the same outputs as TensorFlow's own, every type, errors, threads, memory."""

import gc
import json
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes  # noqa: F401  (NumPy's bfloat16)
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2, saved_model_pb2

from regard.core.processor import count_cores
from regard.serving import c_api
from regard.serving import session as session_module
from regard.serving.contract import read_contract
from regard.serving.saved_model import batch_inputs
from regard.serving.session import DEADLINE_EXCEEDED, INVALID_ARGUMENT, Session, SessionError
from tests import fake_models, fake_tasks

NUMBERS = [
    "bfloat16",
    "float32",
    "float64",
    "float16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "bool",
]
TEXTS = ["", "a", "ä€𝄞", "x" * 22, "y" * 23, "z" * 5000, b"\xff\x00\xfe"]


class Echo(tf.Module):
    """Returns its inputs, and counts up to a limit."""

    @tf.function(
        input_signature=[
            tf.TensorSpec(None, tf.string, name="texts"),
            *(tf.TensorSpec(None, dtype, name=dtype) for dtype in NUMBERS),
        ]
    )
    def echo(self, texts, *numbers):
        outputs = {"texts": texts, **dict(zip(NUMBERS, numbers, strict=True))}
        return {name: tf.identity(value) for name, value in outputs.items()}

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64, name="limit")])
    def count(self, limit):
        tf.debugging.assert_non_negative(limit, "negative")
        (count,) = tf.while_loop(lambda i: i < limit, lambda i: (i + 1,), [tf.zeros_like(limit)])
        return {"count": count}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path, echo = tmp_path_factory.mktemp("echo") / "1", Echo()
    tf.saved_model.save(echo, str(path), {"echo": echo.echo, "count": echo.count})
    return path


@pytest.fixture(scope="module")
def session(folder):
    return Session(folder)


def numbers(*shape):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    return {dtype: values.astype(dtype) for dtype in NUMBERS}


@pytest.mark.parametrize("shape", [(), (1,), (7,), (0,), (2, 0), (2, 3, 1)])
def test_every_type_and_shape_comes_back(session, shape):
    texts = np.resize(np.array(TEXTS, object), shape)
    result = session.run("echo", {"texts": texts, **numbers(*shape)})
    assert (
        result.pop("texts").tolist()
        == np.vectorize(
            lambda text: text.encode() if isinstance(text, str) else text, otypes=[object]
        )(texts).tolist()
    )
    for dtype, value in numbers(*shape).items():
        assert result[dtype].dtype == dtype
        np.testing.assert_array_equal(result[dtype], value)
        assert result[dtype].flags.writeable


def test_transposed_arrays_and_lists_are_inputs(session):
    values = np.arange(6.0).reshape(2, 3).T
    inputs = {"texts": [["a", b"b"]], **numbers(1), "float32": values, "int32": [[1], [2]]}
    result = session.run("echo", inputs)
    np.testing.assert_array_equal(result["float32"], values)
    assert result["int32"].tolist() == [[1], [2]]
    assert result["texts"].tolist() == [[b"a", b"b"]]


def test_a_text_of_another_type_is_rejected(session):
    with pytest.raises(TypeError, match="not int"):
        session.run("echo", {"texts": ["a", 1], **numbers(1)})


def test_errors_have_the_code_and_the_message_of_tensorflow(session, tmp_path):
    with pytest.raises(SessionError, match="negative") as caught:
        session.run("count", {"limit": -1})
    assert caught.value.code == INVALID_ARGUMENT
    with pytest.raises(SessionError) as caught:
        session.run("count", {"limit": 1 << 62}, timeout=0.1)
    assert caught.value.code == DEADLINE_EXCEEDED
    assert session.run("count", {"limit": 3}, timeout=60)["count"] == 3
    with pytest.raises(SessionError, match="Could not find SavedModel"):
        Session(tmp_path)


@pytest.mark.parametrize("name", ["a [x]", "a\\b"])
def test_a_path_that_tensorflow_takes_for_a_pattern_is_refused(folder, tmp_path, name):
    (tmp_path / name).symlink_to(folder)
    with pytest.raises(SessionError) as caught:
        Session(tmp_path / name)
    assert str(tmp_path) not in caught.value.message  # not TensorFlow's search for the variables
    (tmp_path / "a*b, %#é").symlink_to(folder)
    assert Session(tmp_path / "a*b, %#é").run("count", {"limit": 3}, timeout=60)["count"] == 3


def test_a_signature_of_missing_tensors_is_an_error(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "m")
    model = saved_model_pb2.SavedModel.FromString((tmp_path / "m/saved_model.pb").read_bytes())
    signature = model.meta_graphs[0].signature_def["count"]
    for name in ("nothing:0", ""):
        signature.outputs["count"].name = name
        (tmp_path / "m/saved_model.pb").write_bytes(model.SerializeToString())
        with pytest.raises(SessionError, match="has no tensor"):
            Session(tmp_path / "m").run("count", {"limit": 1})
    signature.outputs["count"].name = f"{signature.inputs['limit'].name.split(':')[0]}:9"
    (tmp_path / "m/saved_model.pb").write_bytes(model.SerializeToString())
    with pytest.raises(SessionError):
        Session(tmp_path / "m").run("count", {"limit": 1})


def test_a_repeated_tag_is_the_same_tag(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "m")
    model = saved_model_pb2.SavedModel.FromString((tmp_path / "m/saved_model.pb").read_bytes())
    model.meta_graphs[0].meta_info_def.tags.append("serve")
    (tmp_path / "m/saved_model.pb").write_bytes(model.SerializeToString())
    assert Session(tmp_path / "m").run("count", {"limit": 1})["count"] == 1


def test_a_closed_session_does_not_run(folder):
    session = Session(folder)
    session.close()
    session.close()
    with pytest.raises(SessionError, match="closed"):
        session.run("count", {"limit": 1})


def test_a_session_without_references_closes(folder):
    session = Session(folder)
    finalizer = session._handle.finalizer
    del session
    gc.collect()
    assert not finalizer.alive


def test_close_waits_for_the_runs_of_other_threads(folder, monkeypatch):
    """The memory of a session that runs must not be freed: the process would crash."""
    session, is_running = Session(folder), threading.Event()
    finalizer, call = session._handle.finalizer, c_api.call

    def note_and_call(name, *arguments, **options):
        is_running.set()
        return call(name, *arguments, **options)

    monkeypatch.setattr(session_module, "call", note_and_call)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(session.run, "count", {"limit": 1 << 62}, 0.5)
        assert is_running.wait(30)
        session.close()
        assert finalizer.alive
        error = future.exception(30)  # its traceback does not keep the session
    assert error.code == DEADLINE_EXCEEDED
    assert not finalizer.alive


def test_threads_do_not_mix_their_values(session):
    def run(number):
        texts = [f"{number} {index}" for index in range(50)]
        result = session.run("echo", {"texts": texts, **numbers(1), "int64": [number] * 50})
        assert result["texts"].tolist() == [text.encode() for text in texts]
        assert set(result["int64"].tolist()) == {number}

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, range(64)))


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (fake_models.sentencepiece_model, [{"source": text} for text in ("a b c", "", "ä", "a")]),
        (fake_tasks.Sorter, [{"points": [[3, 0], [1, 0.1]]}, {"points": [[0, 1]]}]),
        (fake_tasks.Matcher, [{"first": "a b", "second": "b"}, {"first": "", "second": "c"}]),
        (fake_tasks.Namer, [{"image": fake_tasks.png(4, 6)}, {"image": fake_tasks.png(3, 3)}]),
    ],
    ids=["text", "points", "pairs", "images"],
)
def test_outputs_equal_those_of_tensorflow_bit_by_bit(tmp_path, model, rows):
    path = fake_models.save(model(), tmp_path / "m")
    contract, loaded = read_contract(path), tf.saved_model.load(str(path))
    sessions = [Session(path, few_runs) for few_runs in (True, False)]
    for name in ("serving_default", contract["detail"]):
        inputs = batch_inputs(contract["signatures"][name]["inputs"], rows)
        expected = loaded.signatures[name](
            **{
                key: tf.constant(
                    value.tolist(), value.dtype if value.dtype != object else tf.string
                )
                for key, value in inputs.items()
            }
        )
        for session in sessions:
            result = session.run(name, inputs)
            assert set(result) == set(expected)
            for key, value in expected.items():
                assert result[key].tobytes() == value.numpy().tobytes() or (
                    result[key].tolist() == value.numpy().tolist()
                )


def run_process(code, *arguments, **variables):
    """Run a program in a new process, and return what it prints as JSON."""
    command = [sys.executable, "-c", code, *arguments]
    return json.loads(subprocess.check_output(command, text=True, env={**os.environ, **variables}))


WITHOUT_TENSORFLOW = """if True:
    import json, sys
    from regard.serving.session import Session
    outputs = Session(sys.argv[1]).run("count", {"limit": 3})
    early = sorted({"tensorflow", "tensorflow_text", "keras"} & set(sys.modules))
    """


def test_it_does_not_import_tensorflow(folder):
    code = WITHOUT_TENSORFLOW + "print(json.dumps([int(outputs['count']), early]))"
    assert run_process(code, folder) == [3, []]


@pytest.mark.slow  # it imports TensorFlow
def test_tensorflow_can_be_imported_afterwards(folder):
    code = f"""{WITHOUT_TENSORFLOW}
    import tensorflow_text
    tokens = tensorflow_text.WhitespaceTokenizer().tokenize(["a b"]).to_list()
    print(json.dumps([early, len(tokens[0])]))"""
    assert run_process(code, folder) == [[], 2]


def test_an_operation_has_one_thread_unless_the_environment_says_otherwise(folder):
    """Also if the first session, which decides, is that of `initialize`."""
    code = """if True:
        import os, sys
        from regard.serving import session
        session.initialize()
        session.Session(sys.argv[1])
        print(len(os.listdir("/proc/self/task")))"""
    default, five = run_process(code, folder), run_process(code, folder, TF_NUM_INTRAOP_THREADS="5")
    assert five - default == 4


def test_the_options_are_those_of_tensorflow(folder, monkeypatch):
    """Each message is parsed with TensorFlow's own class."""
    for name in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
        monkeypatch.delenv(name, raising=False)
    contents = []
    monkeypatch.setattr(
        session_module, "_set_config", lambda _, config: contents.append(config.SerializeToString())
    )
    for few_runs in (False, True):
        Session(folder, few_runs)
        options = config_pb2.ConfigProto(
            intra_op_parallelism_threads=1, inter_op_parallelism_threads=count_cores()
        )
        options.graph_options.rewrite_options.disable_meta_optimizer = True
        if few_runs:
            options.graph_options.optimizer_options.do_function_inlining = True
        assert config_pb2.ConfigProto.FromString(contents.pop()) == options
