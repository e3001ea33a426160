"""Loading models from disk: what is loaded, and what is refused and why."""

import io
import pickle
import zipfile

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import FunctionTransformer

from pear.decision import export_onnx, from_sklearn, load_model, load_skops, save_sklearn
from pear.decision.adapters import loading
from pear.decision.adapters.loading import find_trees
from pear.decision.encoding import unit_inputs
from pear.errors import InvalidSetting, ModelError, ModelRefused

from .conftest import SPACE, make_pipeline_for


def doubled(values):
    return values * 2


def test_a_skops_file_scores_like_the_model_it_holds(pipeline, problem, states, tmp_path):
    model = load_model(save_sklearn(pipeline, tmp_path / "credit.skops"), problem)
    assert model.name == "credit.skops"
    assert np.array_equal(model.score(states), from_sklearn(pipeline, problem).score(states))


@pytest.mark.parametrize(
    "final",
    [
        HistGradientBoostingClassifier(max_iter=3),
        GradientBoostingClassifier(n_estimators=3),
        RandomForestClassifier(3, random_state=0),
        MLPClassifier((4,), max_iter=2_000, tol=1e-3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_of_scikit_learn_need_no_further_trust(final, problem, states, labels, tmp_path):
    fitted = make_pipeline_for(final).fit(SPACE.frame(states), labels)
    model = load_model(save_sklearn(fitted, tmp_path / "m.skops"), problem)
    assert np.array_equal(model.score(states), from_sklearn(fitted, problem).score(states))


def test_an_onnx_file(pipeline, problem, states, tmp_path):
    pytest.importorskip("skl2onnx", reason="needs the extra 'onnx'")
    path = export_onnx(pipeline, problem, tmp_path / "m.onnx")
    expected = from_sklearn(pipeline, problem).score(states)
    assert load_model(str(path), problem).score(states) == pytest.approx(expected, abs=1e-6)


def test_an_address(problem, states, serve):
    def reply(body, number):
        scores = [record["income"] / 5_000 for record in body["records"]]
        return 200, {}, f'{{"scores": {scores}}}'.encode()

    model = load_model(serve(reply).url, problem, timeout=5)
    assert model.score(states) == pytest.approx(states[:, 0] / 5_000)


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("ending", [".pkl", ".pickle", ".joblib", ".pt", ".PTH", ".sav"])
def test_formats_that_can_run_code_are_refused_unopened(ending, problem, tmp_path):
    path = tmp_path / f"model{ending}"
    path.write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    with pytest.raises(ModelRefused, match=r"can run any code .*save_sklearn.*export_onnx"):
        load_model(path, problem)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("ending", [".skops", ".onnx"])
def test_a_pickle_under_another_name_is_refused_unopened(ending, problem, tmp_path):
    if ending == ".onnx":
        pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    path = tmp_path / f"model{ending}"
    path.write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    with pytest.raises(ModelRefused, match=r"is not a skops file|cannot be read as ONNX"):
        load_model(path, problem)
    assert not (tmp_path / "sprung").exists()


def test_unknown_types_are_refused_by_name_and_loaded_when_trusted(tmp_path):
    path = save_sklearn(FunctionTransformer(doubled), tmp_path / "m.skops")
    unknown = f"{doubled.__module__}.doubled"
    with pytest.raises(ModelRefused, match=rf"not known to be safe: {unknown}; .*trusted=\['"):
        load_skops(path)
    assert load_skops(path, trusted=[unknown]).transform(np.ones(1)).tolist() == [2.0]


def damaged_tree(fitted, place, value):
    """The model with one number of its first tree replaced."""
    tree = next(find_trees(fitted))
    if isinstance(fitted, RandomForestClassifier):
        state = tree.__getstate__()
        state["nodes"][place][0] = value
        tree.__setstate__(state)
    else:
        tree.nodes[place][0] = value
    return fitted


@pytest.mark.parametrize(
    ("final", "place", "value"),
    [
        (RandomForestClassifier(2, random_state=0), "left_child", 10**6),
        (RandomForestClassifier(2, random_state=0), "right_child", 0),
        (RandomForestClassifier(2, random_state=0), "feature", 99),
        (HistGradientBoostingClassifier(max_iter=2), "left", 10**6),
        (HistGradientBoostingClassifier(max_iter=2), "right", 0),
    ],
)
def test_a_tree_that_points_outside_of_itself_is_refused(
    final, place, value, problem, states, labels, tmp_path
):
    fitted = damaged_tree(clone(final).fit(unit_inputs(SPACE)(states), labels), place, value)
    path = save_sklearn(fitted, tmp_path / "m.skops")
    with pytest.raises(ModelRefused, match="holds a tree that points outside of itself"):
        load_model(path, problem)


def test_trees_that_split_on_categories_are_sound(states, labels, tmp_path):
    fitted = HistGradientBoostingClassifier(max_iter=3, categorical_features=[3, 4])
    fitted.fit(states, labels)
    asked = ["functools.partial", "sklearn.utils.validation.check_array"]
    loaded = load_skops(save_sklearn(fitted, tmp_path / "m.skops"), trusted=asked)
    assert any(tree.nodes["is_categorical"].any() for tree in find_trees(loaded))
    assert np.array_equal(loaded.predict_proba(states), fitted.predict_proba(states))


def test_a_zip_archive_that_is_no_skops_file_is_refused(problem, tmp_path):
    path = tmp_path / "m.skops"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ModelRefused, match=r"'m.skops' cannot be read as skops"):
        load_model(path, problem)


@pytest.mark.parametrize("where", ["array.npy", "schema.json", "sparse.npz"])
def test_an_archive_that_unpacks_to_far_more_than_a_model_is_refused_unpacked_by_nobody(
    problem, tmp_path, monkeypatch, where
):
    monkeypatch.setattr(loading, "LARGEST", 1_000_000)
    monkeypatch.setattr(loading, "LARGEST_DESCRIPTION", 100_000)
    path, zeros = tmp_path / "m.skops", bytes(2_000_000)
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", zeros)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(where, inner.getvalue() if where == "sparse.npz" else zeros)
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(zipfile.ZipFile, "read", None)
    with pytest.raises(ModelRefused, match=r"unpacks to 2,.*a model holds at most 1,000,000"):
        load_model(path, problem)


def test_a_file_too_large_for_a_model_is_not_opened(problem, tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "LARGEST", 1_000)
    (tmp_path / "m.onnx").write_bytes(bytes(1_001))
    with pytest.raises(ModelRefused, match="larger than 1,000 bytes"):
        load_model(tmp_path / "m.onnx", problem)


@pytest.mark.parametrize("name", ["model.h5", "model", "model.safetensors"])
def test_other_files_are_refused_with_the_choices(name, problem, tmp_path):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(ModelRefused, match=r"give a .onnx file, a .skops file, or the address"):
        load_model(tmp_path / name, problem)


def test_a_missing_file(problem, tmp_path):
    with pytest.raises(ModelError, match="there is no model file"):
        load_model(tmp_path / "absent.skops", problem)


def test_saving_under_another_ending_is_refused(pipeline, tmp_path):
    with pytest.raises(InvalidSetting, match=r"must end in .skops \(got 'm.pkl'\)"):
        save_sklearn(pipeline, tmp_path / "m.pkl")
