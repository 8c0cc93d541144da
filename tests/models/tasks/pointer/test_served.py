"""A pointer as it is exported: asked alone, in batches, with padding, and with nonsense."""

import numpy as np
import pytest
import tensorflow as tf

from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer.export import export
from regard.serving import saved_model
from regard.serving.session import SessionError
from tests.marks import slow, slow_except
from tests.models.tasks.exported import servable
from tests.models.tasks.pointer.made import BEAM, NETWORK, RECURRENT, build, rows, section, training
from tests.models.tasks.task_parts import check_output_names, module_of
from tests.tolerances import assert_close, close_to

LENGTHS = [6, 3, 4, 5]
KINDS = {
    "tours": ({}, BEAM),
    "hulls": ({"visits": "once", "min_points": 3, "encoder": RECURRENT}, {**BEAM, "n_best": 2}),
    "any, drawn": (
        {"visits": "any", "normalise": False, "decoder": {"clip": 5.0}},
        {"type": "sampling", "samples": 2, "seed": 3, "max_source_length": 256},
    ),
    "greedy": ({"visits": "once"}, {"type": "greedy", "max_source_length": 6}),
}


@pytest.fixture(scope="module", params=slow_except(["hulls", "any, drawn"], KINDS))
def exported(request, tmp_path_factory):
    changes, search = KINDS[request.param]
    config = {"model": section(**changes), "training": training(), "search": search}
    model = build(config["model"], certain=2.5)
    path = tmp_path_factory.mktemp("pointer") / "saved"
    export(model, NETWORK, TrainerConfig(task="pointer", **config), {}, path)
    return model, config, path, saved_model.load(path)


def served_module(model, config):
    config = TrainerConfig(task="pointer", **config)
    return module_of("pointer", model, {}, config.model, config.search)


def requested(lengths=LENGTHS, seed=1):
    points, lengths = rows(lengths, seed=seed)
    return [{"points": row[:n]} for row, n in zip(points, lengths, strict=True)]


def is_answer(positions, n, visits):
    every = sorted(positions) == list(range(n))
    once = 1 <= len(positions) == len(set(positions)) and set(positions) <= set(range(n))
    some = 1 <= len(positions) <= n and set(positions) <= set(range(n))
    return {"all": every, "once": once, "any": some}[visits]


def test_the_contract_is_kept(exported):
    _, config, _, served = exported
    names = {"serving_default", "align", "score"}
    assert set(served.contract["signatures"]) - names in ({"nbest"}, set())
    for name in served.contract["signatures"]:
        served.signature(name)
    assert served.contract["size"]["unit"] == "points"
    check_output_names(served.contract)
    answers = served.predict("align", requested())
    for n, answer in zip(LENGTHS, answers, strict=True):
        assert is_answer(answer.hypothesis, n, config["model"]["visits"])
        length = len(answer.hypothesis)
        assert (answer.outputs["length"], answer.outputs["points_length"]) == (length, n)
        attention = answer.outputs["alignment"]
        assert attention.shape == (length, n)
        assert (attention.sum(1) <= 1 + 1e-5).all()
        assert (attention >= 0).all()
        # The score is what the steps' probabilities make, but for that of the end.
        steps = attention[np.arange(length), answer.hypothesis]
        assert answer.score <= np.log(steps).sum() + 1e-4
        if length == n and config["model"]["visits"] != "any":
            assert answer.score == close_to(np.log(steps).sum(), roundings=1000)


def test_answers_are_those_of_the_model(exported):
    model, config, _, served = exported
    module = served_module(model, config)
    points, lengths = rows(LENGTHS)
    here = module.align(tf.constant(points), tf.constant(lengths))
    there = served.run("align", {"points": points, "points_length": lengths})
    for name, value in here.items():
        assert_close(there[name], value)
    assert here["positions"].shape == (4, 6)
    assert here["positions"].dtype == here["length"].dtype == tf.int32
    following = np.arange(6) >= here["length"].numpy()[:, None]
    assert (here["positions"].numpy()[following] == -1).all()
    assert (here["positions"].numpy()[~following] >= 0).all()


def test_alone_is_batched_is_padded(exported):
    _, _, _, served = exported
    questions = requested()
    batched = served.predict("align", questions)
    points, lengths = rows(LENGTHS)
    spoilt = np.full((4, 11, 2), np.nan, "float32")  # what stands behind does not matter
    spoilt[:, :6] = np.where((np.arange(6) < lengths[:, None])[..., None], points, np.inf)
    wide = served.run("align", {"points": spoilt, "points_length": lengths})
    assert wide["positions"].shape == (4, 11)
    assert wide["alignment"].shape == (4, 11, 11)
    for row, question in enumerate(questions):
        (alone,) = served.predict("align", [question])
        (default,) = served.predict("serving_default", [question])
        assert alone.hypothesis == batched[row].hypothesis == default.hypothesis
        for other in (batched[row].score, default.score, wide["score"][row]):
            assert alone.score == close_to(float(other), roundings=1000)
        one, other = alone.outputs["alignment"], batched[row].outputs["alignment"]
        assert_close(one, other)
        n, length = lengths[row], len(alone.hypothesis)
        assert wide["positions"][row].tolist() == alone.hypothesis + [-1] * (11 - length)
        assert_close(wide["alignment"][row, :length, :n], one)
        assert float(tf.reduce_sum(wide["alignment"][row])) == close_to(one.sum(), roundings=1000)


def test_a_given_answer_gets_its_score(exported):
    _, config, _, served = exported
    questions, answers = requested(), served.predict("serving_default", requested())
    inputs = [
        {**question, "positions": answer.hypothesis}
        for question, answer in zip(questions, answers, strict=True)
    ]
    scored = served.predict("score", inputs)
    for answer, one in zip(answers, scored, strict=True):
        assert one.score == close_to(answer.score, roundings=1000)
        length = len(answer.hypothesis)
        steps = one.outputs["position_scores"]
        assert (steps.shape, one.outputs["length"]) == ((length,), length)
        assert steps.sum() >= one.score - 1e-4  # the end has its own
    (alone,) = served.predict("score", inputs[2:3])
    assert alone.score == close_to(scored[2].score)
    if config["model"]["visits"] != "any":
        (twice,) = served.predict("score", [{**questions[0], "positions": [0, 0, 1]}])
        assert twice.score < -1e8


@pytest.mark.parametrize("positions", [[0, 6], [-1, 0]])
def test_positions_that_name_no_point_are_refused(exported, positions):
    _, _, _, served = exported
    inputs = [
        {**question, "positions": [0] if row else positions}
        for row, question in enumerate(requested())
    ]
    with pytest.raises(SessionError, match=r"without a point.*\[0\]"):
        served.predict("score", inputs)


@pytest.mark.parametrize("exported", ["any, drawn"], indirect=True)
def test_more_positions_than_points_are_not_decoded(exported, monkeypatch):
    model, config, _, served = exported
    (long,) = served.predict("score", [{**requested()[0], "positions": [0, 1] * 4}])
    assert long.score < -1e8
    assert long.outputs["position_scores"].shape == (8,)
    module, steps = served_module(model, config), []
    score = module._model.score_with_alignment

    def record(source, target):
        steps.append(target.shape[1])
        return score(source, target)

    monkeypatch.setattr(module._model, "score_with_alignment", record)
    points, lengths = map(tf.constant, rows(LENGTHS))
    module.score(points, lengths, tf.zeros((4, 50), tf.int32), tf.fill([4], 2))
    assert steps == [7]


def test_scores_are_the_models(exported):
    model, config, _, served = exported
    module = served_module(model, config)
    points, lengths = rows(LENGTHS)
    read, _ = module._model_input(tf.constant(points), tf.constant(lengths))
    answers = served.predict("serving_default", requested())
    target = np.zeros((4, 7), "int32")
    for row, answer in enumerate(answers):
        target[row, : len(answer.hypothesis) + 1] = [*(i + 4 for i in answer.hypothesis), 3]
    result = [answer.score for answer in answers]
    assert_close(result, model.score(read, target), roundings=1000)


@pytest.mark.parametrize("exported", ["hulls", "any, drawn"], indirect=True)
def test_the_best_of_several(exported):
    _, config, _, served = exported
    result, best = (
        served.predict("nbest", requested()),
        served.predict("serving_default", requested()),
    )
    for row, n in enumerate(LENGTHS):
        outputs = result[row].outputs
        assert outputs["hypotheses"].shape == (2, n)
        answers = []
        for positions, length in zip(outputs["hypotheses"], outputs["lengths"], strict=True):
            assert (positions[length:] == -1).all()
            answers.append(positions[:length].tolist())
            assert is_answer(answers[-1], n, config["model"]["visits"])
        assert answers[0] == best[row].hypothesis
        assert outputs["log_probabilities"][0] == close_to(best[row].score, roundings=1000)
        assert outputs["log_probabilities"][0] >= outputs["log_probabilities"][1]
        (alone,) = served.predict("nbest", requested()[row : row + 1])
        np.testing.assert_array_equal(alone.outputs["hypotheses"], outputs["hypotheses"])


def test_an_empty_request(exported):
    _, _, _, served = exported
    for width in (0, 3):
        nothing = np.zeros([0, width, 2])
        result = served.run("align", {"points": nothing, "points_length": []})
        assert result["positions"].shape == (0, width)
        assert result["alignment"].shape == (0, width, width)
        assert result["score"].shape == (0,)


def refusal(served, points, lengths):
    """Return TensorFlow's message, or that of an input's length."""
    with pytest.raises((SessionError, saved_model.InputLengthError)) as caught:
        served.run("serving_default", {"points": points, "points_length": lengths})
    return str(caught.value)


def test_invalid_requests_are_rejected(exported):
    _, config, _, served = exported
    points, lengths = rows(LENGTHS)
    least, most = config["model"]["min_points"], config["search"]["max_source_length"]
    for bad in (np.nan, np.inf, -np.inf):
        spoilt = points.copy()
        spoilt[1, 2, 1] = bad
        messages = refusal(served, spoilt, lengths)
        assert "[points that are not finite; in the rows, counted from 0:] [1]" in messages
    messages = refusal(served, points, [6, 3, least - 1, 5])
    assert f"a row has fewer than the {least} points of model.min_points" in messages
    assert "[points_length is more than the points that were sent;" in refusal(
        served, points[:, :4], [4, 3, 5, 4]
    )
    many = np.zeros((1, most + 1, 2))
    assert f"a row has more than the {most} points of max_source_length" in refusal(
        served, many, [most + 1]
    )
    with pytest.raises(
        saved_model.InputLengthError, match=f"more than the {most} points of max_so"
    ):
        served.predict("align", [{"points": many[0]}])


def test_the_fewest_points_that_there_can_be(exported):
    _, config, _, served = exported
    least = config["model"]["min_points"]
    (answer,) = served.predict("align", requested([least]))
    assert is_answer(answer.hypothesis, least, config["model"]["visits"])
    assert answer.outputs["alignment"].shape == (len(answer.hypothesis), least)


def test_a_model_server_has_its_operations(exported):
    assert servable(exported[2])


@pytest.mark.parametrize("exported", ["hulls", slow("tours"), slow("greedy")], indirect=True)
def test_where_points_lie_does_not_matter(exported):
    _, _, _, served = exported
    questions = requested()
    changed = [{"points": 250 * question["points"] - 1000} for question in questions]
    for one, other in zip(
        served.predict("serving_default", questions),
        served.predict("serving_default", changed),
        strict=True,
    ):
        assert one.hypothesis == other.hypothesis
        assert one.score == pytest.approx(other.score, abs=1e-2)


@pytest.mark.parametrize("exported", ["any, drawn"], indirect=True)
def test_where_points_lie_matters_where_it_shall(exported):
    _, _, _, served = exported
    questions = requested()
    changed = [{"points": question["points"] - 3} for question in questions]
    answers, others = (served.predict("serving_default", each) for each in (questions, changed))
    assert [one.score for one in answers] != [other.score for other in others]


@pytest.mark.parametrize("exported", ["any, drawn"], indirect=True)
def test_draws_depend_on_the_points_alone(exported):
    _, _, _, served = exported
    questions = requested([5] * 30, seed=9)
    first = [answer.hypothesis for answer in served.predict("serving_default", questions)]
    again = [answer.hypothesis for answer in served.predict("serving_default", questions[::-1])]
    assert first == again[::-1]
    same = served.predict("serving_default", questions[:1] * 9)
    assert len({tuple(answer.hypothesis) for answer in same}) == 1
    assert len({tuple(answer) for answer in first}) > 4
