"""ONNX files of every shape of input and output, and those that cannot be used."""

import pickle

import numpy as np
import pytest
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from pear.decision import export_onnx, from_onnx
from pear.decision.encoding import unit_inputs
from pear.errors import InvalidSetting, ModelError, ModelOutput, ModelRefused
from pear.problem import Feature, FeatureSpace, Goal
from pear.problem.model_inputs import Interface, ModelInput

from .conftest import SPACE, UNIT, make_pipeline_for, make_problem

pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
onnx = pytest.importorskip("onnx", reason="needs the extra 'onnx'")
skl2onnx = pytest.importorskip("skl2onnx", reason="needs the extra 'onnx'")

NUMBERS = FeatureSpace(SPACE.features[:3])


def linear(width, *, type_name="FLOAT", inputs=None, outputs="score", columns=1, shape=None):
    """A hand-made model: a sum of its inputs with small weights, as a graph of one node."""
    helper, kind = onnx.helper, getattr(onnx.TensorProto, type_name)
    dtype = {"FLOAT": np.float32, "DOUBLE": np.float64, "INT64": np.int64}[type_name]
    weights = np.full((width, columns), 2, dtype)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], [outputs])],
        "linear",
        [helper.make_tensor_value_info(inputs or "x", kind, shape or [None, width])],
        [helper.make_tensor_value_info(outputs, kind, [None, columns])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return model.SerializeToString()


def constant(shares, output="probabilities"):
    """A model of one input per feature that always answers the same probabilities."""
    helper, kinds = onnx.helper, onnx.TensorProto
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["income", "zero"], ["nothing"]),
            helper.make_node("Add", ["nothing", "shares"], [output]),
        ],
        "constant",
        [helper.make_tensor_value_info("income", kinds.FLOAT, [None, 1])],
        [helper.make_tensor_value_info(output, kinds.FLOAT, [None, len(shares)])],
        [
            onnx.numpy_helper.from_array(np.zeros((1, len(shares)), np.float32), "zero"),
            onnx.numpy_helper.from_array(np.array([shares], np.float32), "shares"),
        ],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9
    ).SerializeToString()


def test_a_zipmap_of_class_names(states, labels):
    words = np.array(["bad", "good"])[labels]
    fitted = make_pipeline_for(LogisticRegression(max_iter=500)).fit(SPACE.frame(states), words)
    types = skl2onnx.common.data_types
    initial = [
        (f.name, (types.StringTensorType if f.is_categorical else types.FloatTensorType)([None, 1]))
        for f in SPACE.features
    ]
    content = skl2onnx.to_onnx(fitted, initial_types=initial).SerializeToString()
    model = from_onnx(content, make_problem(Goal(favourable=("bad",))))
    assert model.classes == ("bad", "good")
    expected = fitted.predict_proba(SPACE.frame(states))[:, 0]
    assert model.score(states) == pytest.approx(expected, abs=1e-6)


def test_an_export_remembers_its_classes(states, labels, tmp_path):
    words = np.array(["bad", "good"])[labels]
    fitted = make_pipeline_for(LogisticRegression(max_iter=500)).fit(SPACE.frame(states), words)
    problem = make_problem(Goal(favourable=("good",)))
    model = from_onnx(export_onnx(fitted, problem, tmp_path / "credit.onnx"), problem)
    assert (model.name, model.classes) == ("credit.onnx", ("bad", "good"))


def test_a_single_tensor_of_numbers(states):
    fitted = LogisticRegression(max_iter=500).fit(states[:, :3], states[:, 0] > 2_500)
    content = skl2onnx.to_onnx(
        fitted, states[:1, :3].astype(np.float32), options={"zipmap": False}
    ).SerializeToString()
    problem = make_problem(space=NUMBERS)
    with pytest.raises(ModelError, match=r"tensor of 3 columns without names"):
        from_onnx(content, problem)
    model = from_onnx(content, problem, inputs=[ModelInput(name) for name in NUMBERS.names])
    expected = fitted.predict_proba(states[:, :3])[:, 1]
    assert model.score(states[:, :3]) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("type_name", ["FLOAT", "DOUBLE"])
def test_a_single_tensor_of_the_one_hot_encoding_with_logits(problem, states, type_name):
    content = linear(unit_inputs(SPACE).width, type_name=type_name)
    model = from_onnx(content, problem, output="logits", name="sum", inputs=UNIT)
    expected = 1 / (1 + np.exp(-2 * unit_inputs(SPACE)(states).sum(axis=1)))
    assert model.score(states) == pytest.approx(expected, abs=1e-6)


def test_a_tensor_of_unknown_width_gets_what_is_declared(states):
    content = linear(unit_inputs(SPACE).width, shape=[None, None])
    stated = make_problem(interface=Interface(UNIT, "logits"))
    model = from_onnx(content, stated)
    assert ((model.score(states) > 0.5) & (model.score(states) < 1)).any()


def test_logits_taken_for_probabilities_are_refused(problem):
    with pytest.raises(ModelOutput, match=r"'sum' returned .*; if they are logits, say output"):
        from_onnx(linear(unit_inputs(SPACE).width), problem, name="sum", inputs=UNIT)


@pytest.mark.parametrize("width", [4, 5, unit_inputs(SPACE).width, None])
def test_the_columns_of_a_tensor_are_declared_never_guessed(width, problem):
    content = linear(width or 5, shape=[None, width])
    with pytest.raises(ModelError, match=r"without names, and nothing says .*\[model.inputs\]"):
        from_onnx(content, problem)
    if width == 4:
        with pytest.raises(
            ModelError, match="a tensor of 4 columns, but the declared inputs make 8"
        ):
            from_onnx(content, problem, inputs=UNIT)


def test_an_input_type_we_cannot_give_is_refused(problem):
    kinds, helper = onnx.TensorProto, onnx.helper
    graph = helper.make_graph(
        [helper.make_node("Cast", ["income"], ["score"], to=kinds.FLOAT)],
        "cast",
        [helper.make_tensor_value_info("income", kinds.UINT8, [None, 1])],
        [helper.make_tensor_value_info("score", kinds.FLOAT, [None, 1])],
    )
    content = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9
    ).SerializeToString()
    with pytest.raises(ModelError, match=r"input of type tensor\(uint8\)"):
        from_onnx(content, problem)


def test_classes_by_name_and_by_number(states):
    content = constant([0.5, 0.3, 0.2])
    by_number = from_onnx(content, make_problem(Goal(favourable=(1, 2))))
    assert by_number.score(states[:1]) == pytest.approx([0.5])
    by_name = from_onnx(content, make_problem(Goal(favourable=("b",))), classes=("a", "b", "c"))
    assert by_name.score(states[:1]) == pytest.approx([0.3])


def test_an_input_the_problem_does_not_have_is_refused(states, labels, tmp_path, pipeline):
    export_onnx(pipeline, make_problem(), tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="inputs the problem does not have: job, city"):
        from_onnx(tmp_path / "m.onnx", make_problem(space=NUMBERS))


def test_a_category_given_as_a_number_is_refused(problem):
    kinds, helper = onnx.TensorProto, onnx.helper
    graph = helper.make_graph(
        [helper.make_node("Identity", ["job"], ["score"])],
        "same",
        [helper.make_tensor_value_info("job", kinds.FLOAT, [None, 1])],
        [helper.make_tensor_value_info("score", kinds.FLOAT, [None, 1])],
    )
    content = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9
    ).SerializeToString()
    with pytest.raises(
        ModelError, match=r"takes 'job' as a tensor\(float\), but it is categorical"
    ):
        from_onnx(content, problem)


def test_a_number_wanted_as_text_is_given_as_text(problem, states):
    kinds, helper = onnx.TensorProto, onnx.helper
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["income"], ["number"], to=kinds.FLOAT),
            helper.make_node("Mul", ["number", "w"], ["score"]),
        ],
        "text",
        [helper.make_tensor_value_info("income", kinds.STRING, [None])],
        [helper.make_tensor_value_info("score", kinds.FLOAT, [None])],
        [onnx.numpy_helper.from_array(np.array(1 / 5_000, np.float32), "w")],
    )
    content = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9
    ).SerializeToString()
    assert from_onnx(content, problem).score(states) == pytest.approx(
        states[:, 0] / 5_000, abs=1e-6
    )


def test_a_model_with_labels_only_is_refused(problem):
    content = linear(unit_inputs(SPACE).width, type_name="INT64", outputs="label")
    with pytest.raises(ModelError, match="no output of scores"):
        from_onnx(content, problem, inputs=UNIT)


def test_bytes_that_are_no_onnx_are_refused(problem):
    with pytest.raises(ModelRefused, match="cannot be read as ONNX"):
        from_onnx(b"\x80\x04not a model", problem)


def test_output_of_an_unknown_kind_is_refused(problem):
    with pytest.raises(InvalidSetting, match="'output' must be one of logits, probabilities"):
        from_onnx(b"", problem, output="labels")


def test_it_travels_to_a_worker_process(pipeline, problem, states, tmp_path):
    model = from_onnx(export_onnx(pipeline, problem, tmp_path / "m.onnx"), problem)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.score(states), model.score(states))


def test_exports_that_cannot_be_made(pipeline, problem, states, labels, tmp_path):
    with pytest.raises(InvalidSetting, match=r"must end in .onnx \(got 'm.bin'\)"):
        export_onnx(pipeline, problem, tmp_path / "m.bin")
    fitted = LogisticRegression(max_iter=500).fit(states[:, :3], labels)
    with pytest.raises(ModelError, match="fit it on a DataFrame"):
        export_onnx(fitted, make_problem(space=NUMBERS), tmp_path / "m.onnx")


@pytest.mark.parametrize("kind", ["linear", "neighbours", "stack"])
@pytest.mark.parametrize(("classes", "favourable"), [(("good", "bad"), "bad"), ((1, 2), 1)])
def test_classes_of_a_plain_export_are_found(kind, classes, favourable, states):
    """Exports without a map of classes: nodes, constants or the labels answered tell them."""
    inputs = NUMBERS.scaled(states[:, :3])
    decided = np.array(classes)[(inputs[:, 0] > 0.5).astype(int)]
    linear_model = LogisticRegression(max_iter=500)
    fitted = {
        "linear": linear_model,
        "neighbours": KNeighborsClassifier(3),
        "stack": StackingClassifier([("a", linear_model), ("b", GaussianNB())], cv=2),
    }[kind].fit(inputs, decided)
    content = skl2onnx.to_onnx(
        fitted, inputs[:1].astype(np.float32), options={"zipmap": False}
    ).SerializeToString()
    space = FeatureSpace(tuple(Feature(f.name, scale=(0, 1)) for f in NUMBERS.features))
    columns = Interface(tuple(ModelInput(name) for name in space.names))
    model = from_onnx(
        content, make_problem(Goal(favourable=(favourable,)), space, interface=columns)
    )
    column = fitted.classes_.tolist().index(favourable)
    expected = fitted.predict_proba(inputs)[:, column]
    assert np.abs(model.score(inputs) - expected).max() < 1e-4
    with pytest.raises(ModelOutput, match="has no class 'best'; its classes are"):
        from_onnx(content, make_problem(Goal(favourable=("best",)), space, interface=columns))


def test_columns_without_any_name_are_not_guessed():
    with pytest.raises(ModelOutput, match="not say which of its 2 columns is the class 'good'"):
        from_onnx(constant([0.3, 0.7]), make_problem(Goal(favourable=("good",))))


def test_what_onnx_cannot_hold_is_refused(problem, states, labels, tmp_path):
    class Mine(LogisticRegression):
        pass

    fitted = make_pipeline_for(Mine()).fit(SPACE.frame(states), labels)
    with pytest.raises(ModelError, match=r"cannot be written as ONNX .*save_sklearn.*--trust"):
        export_onnx(fitted, problem, tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("type_name", "value", "held"),
    [("INT64", 3.0, "3."), ("BOOL", 25.0, "25"), ("FLOAT16", 9e4, "9000")],
)
def test_an_input_that_cannot_hold_a_number_is_never_given_another(type_name, value, held):
    space = FeatureSpace((Feature("income", scale=(0, 1)),))
    inputs = (ModelInput("x", "income", subtract=-value),)
    helper, kinds = onnx.helper, onnx.TensorProto
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["x"], ["n"], to=kinds.FLOAT),
            helper.make_node("Sigmoid", ["n"], ["score"]),
        ],
        "one",
        [helper.make_tensor_value_info("x", getattr(kinds, type_name), [None, 1])],
        [helper.make_tensor_value_info("score", kinds.FLOAT, [None, 1])],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    content = made.SerializeToString()
    with pytest.raises(ModelError, match=rf"takes 'x' as a tensor.*does not hold {held}"):
        from_onnx(content, make_problem(space=space, interface=Interface(inputs)))
