"""How is a model written as ONNX, so that it loads without running anybody's code?"""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import numpy as np

from pear.decision.adapters.frames import FrameMaker
from pear.decision.adapters.onnx import (
    CLASSES_KEY,
    INPUTS_KEY,
    MISSING_KEY,
    OUTPUT_KEY,
    from_onnx,
)
from pear.decision.adapters.sklearn import (
    SklearnScores,
    column_names,
    final_estimator,
    from_sklearn,
)
from pear.decision.adapters.torch import Output, TorchScores, from_torch
from pear.decision.blackbox import BlackBox, probe_states
from pear.decision.inputs import Inputs
from pear.errors import InvalidSetting, ModelError, ModelWarning, PearError
from pear.optional import require
from pear.problem import Problem
from pear.problem.inputs import ModelInput

TOLERANCE, SHARE = 1e-4, 0.02
"""Scores that differ by more count as other scores; more of them than this share refuse a file."""

OTHER_WAY = (
    "save it with pear.decision.save_sklearn(model, 'model.skops') instead, and load it with "
    "--trust TYPE where it asks for types (in Python: trusted=[…])"
)


def export_onnx(
    model: Any,
    problem: Problem,
    path: str | Path,
    *,
    inputs: Sequence[ModelInput] | None = None,
    output: Output = "logits",
) -> Path:
    """Write a classifier as ONNX, and check that the file answers as the model does.

    Needs the extra ``onnx``. The classifiers of LightGBM and XGBoost are converted by onnxmltools,
    alone and at the end of pipelines; CatBoost and torch write their own.

    Parameters
    ----------
    model
        A scikit-learn classifier or pipeline, or one of a boosting library, fitted on a DataFrame
        (the file then has one input per column: numbers in single precision, categories as text,
        a missing text as an empty one), or a torch module.
    inputs, output
        For a torch module: its columns (left out: ``[model.inputs]`` of the problem) and what it
        answers. Both are kept in the file.

    Raises
    ------
    ModelError
        Where the model cannot be written, or the file answers otherwise; with what works instead.
    """
    path = Path(path)
    if path.suffix != ".onnx":
        raise InvalidSetting(f"'path' must end in .onnx (got {path.name!r})")
    kind = f"{type(model).__module__}.{type(model).__name__}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        if _is_torch(model):
            real = from_torch(model, problem, inputs=inputs, output=output)
            content = _torch_content(model, real)
        else:
            real = from_sklearn(model, problem)
            content = _sklearn_content(model, problem, real, kind)
        _check_same(real, from_onnx(content, problem, name=path.name), kind)
    path.write_bytes(content)
    return path


def _is_torch(model: Any) -> bool:
    return any(base.__module__.startswith("torch.nn.") for base in type(model).__mro__)


def _check_same(real: BlackBox, written: BlackBox, kind: str) -> None:
    """Refuse a file that answers otherwise than the model, with missing values too."""
    states = probe_states(real.space, 256, np.random.default_rng(7))
    for column, feature in enumerate(real.space.features):
        if feature.may_be_missing:
            states[column::17, column] = np.nan
    difference = np.abs(real.probe(states) - written.probe(states))
    if (difference > TOLERANCE).mean() > SHARE:
        raise ModelError(
            f"as ONNX, '{kind}' would answer otherwise (by up to {difference.max():.2g} on "
            f"{(difference > TOLERANCE).mean():.0%} of invented people); {OTHER_WAY}"
        )


def _sklearn_content(model: Any, problem: Problem, real: BlackBox, kind: str) -> bytes:
    maker = cast(SklearnScores, real.function).maker
    if not isinstance(maker, FrameMaker) or not column_names(model):
        raise ModelError(
            "the model was not fitted on a DataFrame; fit it on one with the feature names as "
            "columns"
        )
    try:
        if type(model).__module__.startswith("catboost."):
            made = _catboost(model, maker)
        else:
            made = _converted(model, maker)
    except PearError:
        raise
    except Exception as error:  # the converters raise many kinds, for what they do not know yet
        first = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise ModelError(f"'{kind}' cannot be written as ONNX ({first}); {OTHER_WAY}") from error
    facts = {
        CLASSES_KEY: json.dumps(np.asarray(model.classes_).tolist()),
        MISSING_KEY: "",
    }
    return _with_facts(made, facts)


def _with_facts(made: Any, facts: dict[str, str]) -> bytes:
    for key, value in facts.items():
        entry = made.metadata_props.add()
        entry.key, entry.value = key, value
    content: bytes = made.SerializeToString()
    return content


def _converted(model: Any, maker: FrameMaker) -> Any:
    """A pipeline or estimator by skl2onnx, with the converters of onnxmltools where it has none."""
    convert = require("skl2onnx").to_onnx
    types = require("skl2onnx.common.data_types")
    _register_boosters(model)
    texts = [name for name in maker.columns if _is_text(maker, name)]
    if texts and maker.category_dtype:
        model = _with_codes(model, maker, texts)
    model = with_empty_texts(model, texts, maker.columns)
    initial = [
        (name, (types.StringTensorType if name in texts else types.FloatTensorType)([None, 1]))
        for name in maker.columns
    ]
    return convert(
        model,
        initial_types=initial,
        options={"zipmap": False},
        target_opset={"": 17, "ai.onnx.ml": 3},
    )


def _is_text(maker: FrameMaker, name: str) -> bool:
    feature = maker.values_of(name)
    return feature is not None and feature.is_categorical


def with_empty_texts(model: Any, texts: Sequence[str], columns: Sequence[str]) -> Any:
    """A copy whose imputers and encoders of texts take an empty one for a missing value.

    ONNX knows no missing text. Imputers of numbers are left as they are.
    """
    model = copy.deepcopy(model)
    for part, own in _parts(model, tuple(columns)):
        if not own or not set(own) <= set(texts):
            continue
        if hasattr(part, "statistics_") and part.missing_values != part.missing_values:
            part.missing_values = ""
        for place, known in enumerate(getattr(part, "categories_", ())):
            if known.dtype == object:
                gone = np.array([value is None or value != value for value in known])
                part.categories_[place] = np.where(gone, "", known)
    return model


def _parts(model: Any, columns: tuple[str, ...]) -> list[tuple[Any, tuple[str, ...]]]:
    """Every transformer with the table's columns it is given; none behind what makes new ones."""
    found: list[tuple[Any, tuple[str, ...]]] = []
    if hasattr(model, "steps"):
        for _, step in model.steps:
            found += _parts(step, columns)
            if not hasattr(step, "statistics_"):
                columns = ()
    elif hasattr(model, "transformers_"):
        for _, part, chosen in model.transformers_:
            if not isinstance(part, str):
                found += _parts(part, tuple(_chosen(chosen, columns)))
    else:
        found.append((model, columns))
    return found


def _chosen(chosen: Any, columns: tuple[str, ...]) -> list[str]:
    if isinstance(chosen, slice) or np.asarray(chosen).dtype.kind in "bi":
        return [str(c) for c in np.atleast_1d(np.asarray(columns, object)[chosen]).tolist()]
    return [str(c) for c in np.atleast_1d(np.asarray(chosen, object)).tolist()]


def _with_codes(model: Any, maker: FrameMaker, texts: list[str]) -> Any:
    """A pipeline that turns texts into the codes on which a booster splits, and the booster."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OrdinalEncoder

    learnt = getattr(getattr(model, "_Booster", None), "pandas_categorical", None)
    if getattr(model, "steps", None) or learnt is None:
        raise ModelError(
            f"'{type(final_estimator(model)).__name__}' splits on pandas categories, which no "
            f"converter writes; encode them in a pipeline (OrdinalEncoder or OneHotEncoder), or "
            f"{OTHER_WAY}"
        )
    encoder = OrdinalEncoder(
        categories=[list(map(str, categories)) for categories in learnt],
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
    )
    codes = [(f"codes {name}", copy.copy(encoder), [name]) for name in texts]
    for (_, part, _), categories in zip(codes, learnt, strict=True):
        part.categories = [list(map(str, categories))]
    parts = [
        next((code for code in codes if code[2] == [name]), (name, "passthrough", [name]))
        for name in maker.columns
    ]
    front = ColumnTransformer(parts).fit(
        maker(probe_states(maker.space, 4, np.random.default_rng(0)))
    )
    return Pipeline([("codes", front), ("model", model)])


def _register_boosters(model: Any) -> None:
    """Tell skl2onnx about the boosters inside a model."""
    names = {type(part).__module__.split(".")[0] for part, _ in _parts(model, ())}
    wanted = {"lightgbm": _lightgbm, "xgboost": _xgboost}
    for package in names & set(wanted):
        register = require("skl2onnx").update_registered_converter
        kind, convert = wanted[package]()
        shapes = require(
            "skl2onnx.common.shape_calculator"
        ).calculate_linear_classifier_output_shapes
        register(
            kind,
            f"Pear{kind.__name__}",
            shapes,
            convert,
            options={
                "nocl": [True, False],
                "zipmap": [True, False, "columns"],
                "raw_scores": [True, False],
            },
        )


def _lightgbm() -> tuple[Any, Callable[..., Any]]:
    module = require("onnxmltools.convert.lightgbm.operator_converters.LightGbm")
    return require("lightgbm").LGBMClassifier, module.convert_lightgbm


def _xgboost() -> tuple[Any, Callable[..., Any]]:
    module = require("onnxmltools.convert.xgboost.operator_converters.XGBoost")
    return require("xgboost").XGBClassifier, module.convert_xgboost


def _catboost(model: Any, maker: FrameMaker) -> Any:
    """CatBoost's own file has one tensor of numbers; the columns are kept beside it."""
    if model.get_cat_feature_indices():
        raise ModelError(
            "CatBoost writes no ONNX of models with categories of their own; encode them in a "
            f"pipeline (OneHotEncoder, OrdinalEncoder), or {OTHER_WAY}"
        )
    import tempfile

    onnx = require("onnx")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model.onnx"
        model.save_model(str(place), format="onnx")
        made = onnx.load(str(place))
    columns = [asdict(maker.sources[name]) for name in maker.columns]
    entry = made.metadata_props.add()
    entry.key, entry.value = INPUTS_KEY, json.dumps(columns)
    return made


def _torch_content(module: Any, real: BlackBox) -> bytes:
    """A torch module by its own exporter, with its columns and its kind of output."""
    import io

    torch, onnx = require("torch"), require("onnx")
    function = cast(TorchScores, real.function)
    if not isinstance(function.encode, Inputs):
        raise ModelError("'encode' cannot be written as ONNX; declare the columns as 'inputs'")
    parameter = next(iter(module.parameters()), None)
    some = torch.as_tensor(function.some_inputs()[:2])
    some = some if parameter is None else some.to(dtype=parameter.dtype, device=parameter.device)
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.onnx.export(
                module.eval(),
                (some,),
                file,
                input_names=["inputs"],
                output_names=["scores"],
                dynamic_axes={"inputs": {0: "people"}, "scores": {0: "people"}},
                dynamo=False,
            )
        except Exception as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
            raise ModelError(
                f"torch cannot write this module as ONNX ({first}); serve it behind an address, or "
                "write a plain one (layers and activations, no branches on values)"
            ) from error
    facts = {
        INPUTS_KEY: json.dumps([asdict(column) for column in function.encode.columns]),
        OUTPUT_KEY: function.output,
    }
    if real.classes:
        facts[CLASSES_KEY] = json.dumps(list(real.classes))
    return _with_facts(onnx.load_model_from_string(file.getvalue()), facts)
