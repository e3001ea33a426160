"""Which model is in this file or at this address, and is it safe to load?

Formats that can run code when they are loaded (pickle, joblib, torch's own) are always refused:
opening a stranger's model must never hand them the machine.
"""

from __future__ import annotations

import importlib
import os
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pear.decision.adapters.endpoint import from_endpoint
from pear.decision.adapters.onnx import from_onnx
from pear.decision.adapters.sklearn import from_sklearn
from pear.decision.adapters.torch import from_torch
from pear.decision.blackbox import BlackBox, from_callable
from pear.decision.several_models import check_agree, several
from pear.errors import InvalidSetting, ModelError, ModelRefused
from pear.problem import Problem
from pear.problem.values import check_type, kind_of

RUNS_CODE = (".pkl", ".pickle", ".joblib", ".dill", ".cloudpickle", ".sav", ".pt", ".pth")
"""Endings of formats whose loading can run any code."""

LARGEST = 1 << 30
"""Bytes of the largest model file, and of all that one holds once it is unpacked."""

LARGEST_DESCRIPTION = 32 << 20
"""Bytes of the largest description of a skops model; reading it takes many times as many."""

KNOWN_SAFE = (
    "collections.OrderedDict",
    "numpy.dtype",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
)
"""Types that skops asks about and that only hold numbers; trees are checked after loading."""


def load_model(
    source: Any,
    problem: Problem,
    *,
    agree: float = 1.0,
    trusted: Sequence[str] = (),
    **settings: Any,
) -> BlackBox:
    """A model of any kind, or several, as one black box.

    Parameters
    ----------
    source
        A ``.onnx`` or ``.skops`` file, an http(s) scoring endpoint, or the model itself: a fitted
        estimator or pipeline, a torch module, a function of states ``(n, d)``, or a
        :class:`BlackBox`, which stays as it is. A list of these, or a folder of files, is several
        models, which say yes together.
    problem
        What the model is given, and which of its classes is favourable.
    agree
        The share of several models that must say yes.
    trusted
        Types inside a skops file that you trust although this package does not know them.
    settings
        For ``from_onnx``, ``from_sklearn``, ``from_torch``, ``from_callable`` or
        ``from_endpoint``.

    Returns
    -------
    BlackBox
        Rows in, scores out, every row counted.

    Raises
    ------
    ModelRefused
        Where the file is of a kind whose loading could run its code, or of none we know.
    ModelError
        Where the model cannot be used for the problem.

    Examples
    --------
    >>> from pear.problem import Action, Feature, Problem
    >>> problem = Problem([Feature("income")], [Action("earn", "income", "add", (10.0,))])
    >>> load_model(lambda states: states[:, 0] / 100, problem, name="income")
    BlackBox('income', 0 rows asked)
    """
    check_type("problem", problem, Problem)
    check_agree(agree)
    if isinstance(source, (list, tuple)) or _is_folder(source):
        models = load_models(source, problem, trusted=trusted, **settings)
        return models[0] if len(models) == 1 else several(models, agree)
    if isinstance(source, BlackBox):
        source.check_problem(problem)
        return source
    if not isinstance(source, (str, os.PathLike)):
        return _in_memory(source, problem, settings)
    if isinstance(source, str) and source.startswith(("http://", "https://")):
        return from_endpoint(source, problem, **settings)
    path = Path(source)
    ending = path.suffix.lower()
    if ending in RUNS_CODE:
        raise ModelRefused(
            f"'{path.name}' is a {ending} file, and loading one can run any code that its author "
            "put in; load it yourself where you trust it and save it with "
            "pear.decision.save_sklearn(model, 'model.skops') or "
            "pear.decision.export_onnx(model, problem, 'model.onnx')"
        )
    if ending not in (".onnx", ".skops"):
        raise ModelRefused(
            f"'{path.name}' is not a model we can load; give a .onnx file, a .skops file, or the "
            "address of an http(s) endpoint"
        )
    if not path.is_file():
        raise ModelError(f"there is no model file '{path}'; check the path")
    if path.stat().st_size > LARGEST:
        raise ModelRefused(f"'{path.name}' is larger than {LARGEST:,} bytes; is it a model?")
    if ending == ".onnx":
        return from_onnx(path, problem, **settings)
    return from_sklearn(load_skops(path, trusted), problem, **{"name": path.name, **settings})


def load_models(source: Any, problem: Problem, **settings: Any) -> list[BlackBox]:
    """The models of a list, of a folder, or of a list of these, each as a black box of its own."""
    if isinstance(source, (list, tuple)):
        return [model for one in source for model in load_models(one, problem, **settings)]
    sources = _files(Path(source)) if _is_folder(source) else [source]
    return [load_model(one, problem, **settings) for one in sources]


def _is_folder(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike)) and Path(source).is_dir()


def _files(folder: Path) -> list[Path]:
    """The model files of a folder, by name."""
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in (".onnx", ".skops"))
    if not files:
        raise ModelError(f"the folder '{folder}' holds no .onnx or .skops file; check the path")
    return files


def _in_memory(model: Any, problem: Problem, settings: dict[str, Any]) -> BlackBox:
    """A model object, recognised by what it can do."""
    if isinstance(model, type):
        raise ModelRefused(f"{model.__name__} is a class; give a fitted object of it")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return from_torch(model, problem, **settings)
    if any(hasattr(model, name) for name in ("predict_proba", "decision_function", "predict")):
        return from_sklearn(model, problem, **settings)
    if callable(model):
        return from_callable(model, problem, **settings)
    raise ModelRefused(
        f"{kind_of(model)} is not a model we know; give a fitted classifier, a torch "
        "module, a function of states, a .onnx or .skops file, or the address of an endpoint"
    )


def save_sklearn(model: Any, path: str | Path) -> Path:
    """Write a fitted estimator as a ``.skops`` file, which loads without running its code."""
    path = Path(path)
    if path.suffix != ".skops":
        raise InvalidSetting(f"'path' must end in .skops (got {path.name!r})")
    _skops().dump(model, path)
    return path


class _NoTorch:
    """Hides torch from code that looks for it."""

    def find_spec(self, name: str, *place: Any) -> None:
        if name == "torch":
            raise ModuleNotFoundError("torch is not needed here", name=name)


def _skops() -> Any:
    """``skops.io``, imported without torch: its survey of scikit-learn would otherwise load it, for
    seconds."""
    if "torch" in sys.modules:
        return importlib.import_module("skops.io")
    hidden = _NoTorch()
    sys.meta_path.insert(0, hidden)
    try:
        return importlib.import_module("skops.io")
    finally:
        sys.meta_path.remove(hidden)


def _check_unpacked(path: Path) -> None:
    """Refuse an archive that unpacks to far more than a model, before any of it is unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            held = sum(part.file_size for part in parts)
            described = sum(part.file_size for part in parts if part.filename == "schema.json")
            for part in parts if held <= LARGEST else ():
                if part.filename.endswith(".npz"):  # sparse arrays: an archive in the archive
                    with archive.open(part) as inner, zipfile.ZipFile(inner) as packed:
                        held += sum(one.file_size for one in packed.infolist())
    except (OSError, zipfile.BadZipFile) as error:
        raise ModelRefused(f"'{path.name}' cannot be read as skops: {error}") from error
    if held > LARGEST or described > LARGEST_DESCRIPTION:
        raise ModelRefused(
            f"'{path.name}' unpacks to {held:,} bytes, {described:,} of them its description; a "
            f"model holds at most {LARGEST:,} and {LARGEST_DESCRIPTION:,}"
        )


def load_skops(path: str | Path, trusted: Sequence[str] = ()) -> Any:
    """The estimator in a skops file, if it holds nothing but known and trusted types."""
    skops, path = _skops(), Path(path)
    if not zipfile.is_zipfile(path):
        raise ModelRefused(
            f"'{path.name}' is not a skops file (those are zip archives); save the model again "
            "with pear.decision.save_sklearn"
        )
    _check_unpacked(path)
    try:
        unknown = skops.get_untrusted_types(file=path)
        refused = sorted(set(unknown) - set(KNOWN_SAFE) - set(trusted))
        model = None if refused else skops.load(path, trusted=list(unknown))
    except Exception as error:
        raise ModelRefused(f"'{path.name}' cannot be read as skops: {error}") from error
    if refused:
        raise ModelRefused(
            f"'{path.name}' holds types that are not known to be safe: {', '.join(refused)}; if "
            f"you trust its author, load it with {' '.join(f'--trust {name}' for name in refused)} "
            f"(in Python: trusted={refused!r})"
        )
    check_trees(model, path.name)
    return model


# Are the trees in a model from a file sound?

TREE_TYPES = ("Tree", "TreePredictor")


def check_trees(model: Any, name: str) -> None:
    """Refuse a model in which some tree points outside of itself."""
    for tree in find_trees(model):
        if type(tree).__name__ == "Tree":
            left, right, feature = tree.children_left, tree.children_right, tree.feature
            inner = (left != -1) | (right != -1)
            width, sound = tree.n_features, len(tree.value) == len(left)
        else:
            nodes = tree.nodes
            left, right = nodes["left"].astype(int), nodes["right"].astype(int)
            feature, inner = nodes["feature_idx"], nodes["is_leaf"] == 0
            width, sound = np.inf, not nodes["is_categorical"].any() or _bins_fit(tree)
        places = np.arange(len(left))
        for child in (left, right):
            # Children after their parent: every walk ends.
            sound &= bool(((child > places) & (child < len(left)))[inner].all())
        sound &= bool(((feature >= 0) & (feature < width))[inner].all())
        if not sound:
            raise ModelRefused(
                f"'{name}' holds a tree that points outside of itself; it was damaged or made to "
                "do harm: get the model again from its author"
            )


def find_trees(model: Any) -> Iterator[Any]:
    """Every tree inside an estimator, however deep."""
    waiting, seen = [model], set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if type(item).__name__ in TREE_TYPES:
            yield item
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, (list, tuple, set)):
            waiting += item
        elif isinstance(item, np.ndarray):
            waiting += item.ravel().tolist() if item.dtype == object else []
        elif type(item).__module__.startswith(("sklearn.", "pear.")):
            waiting += vars(item).values() if hasattr(item, "__dict__") else []


def _bins_fit(tree: Any) -> bool:
    """Whether the category sets that nodes refer to are there."""
    rows = tree.nodes["bitset_idx"][tree.nodes["is_categorical"] != 0]
    return bool((rows < len(tree.raw_left_cat_bitsets)).all())
