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

from pear.decision.adapters.frames import FrameMaker, chosen_names
from pear.decision.adapters.onnx import (
    CLASSES_KEY,
    DIGITS_KEY,
    DOUBT_KEY,
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
from pear.decision.encoding import Inputs
from pear.errors import InvalidSetting, ModelError, ModelOutput, ModelWarning, PearError
from pear.optional import require
from pear.problem import Problem
from pear.problem.model_inputs import ModelInput

PROBES = 4_096
"""The number of invented people for whom file and model must give the same scores."""

TOLERANCE, SHARE = 1e-4, 0.02
"""Scores that differ by more count as different; a file with a larger share of them is refused."""

DIGITS = 6
"""Decimals of single precision that are those of the model: a share of 15 of 30 trees is 0.5."""

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
    """Write a classifier as ONNX, and check that the file gives the same scores as the model.

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
        Where the model cannot be written, or the file gives other scores; with what works instead.
    """
    path = Path(path)
    if path.suffix != ".onnx":
        raise InvalidSetting(f"'path' must end in .onnx (got {path.name!r})")
    kind = f"{type(model).__module__}.{type(model).__name__}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        if _is_torch(model):
            real = from_torch(model, problem, inputs=inputs, output=output)
            made, facts = _of_torch(model, real)
        else:
            real = from_sklearn(model, problem)
            made, facts = _of_sklearn(model, real, kind)
        try:
            written = from_onnx(_with_facts(made, facts), problem, name=path.name)
            doubt = _doubt(real, written, kind)
        except ModelOutput as error:
            raise ModelError(
                f"as ONNX, '{kind}' could not be run ({str(error)[:300]}); {OTHER_WAY}"
            ) from error
    if doubt:
        warnings.warn(doubt, ModelWarning, stacklevel=2)
    path.write_bytes(_with_facts(made, facts | ({DOUBT_KEY: doubt} if doubt else {})))
    return path


def _is_torch(model: Any) -> bool:
    return any(base.__module__.startswith("torch.nn.") for base in type(model).__mro__)


def _doubt(real: BlackBox, written: BlackBox, kind: str) -> str:
    """A warning about a file that gives a few people other scores than the model; one that gives
    them to more is refused.

    The people are invented, with round numbers, where trees have their thresholds, and with missing
    values.
    """
    rng = np.random.default_rng(7)
    states = probe_states(real.space, PROBES, rng)
    for column, feature in enumerate(real.space.features):
        if feature.kind == "numeric":
            ends = states[:, column].min(), states[:, column].max()
            even = np.round(np.linspace(*ends, PROBES), 0 if ends[1] - ends[0] > 50 else 2)
            states[:, column] = rng.permutation(even.clip(*ends))
        if feature.may_be_missing:
            states[column::17, column] = np.nan
    difference = np.abs(real.probe(states) - written.probe(states))
    share = float((difference > TOLERANCE).mean())
    if not share:
        return ""
    words = f"other scores for {share:.1%} of invented people (by up to {difference.max():.2g})"
    if share > SHARE:
        raise ModelError(f"as ONNX, '{kind}' would give {words}; {OTHER_WAY}")
    return (
        f"as ONNX, '{kind}' gives {words}, where single precision falls on the other side of a "
        "threshold, and perhaps more often for real ones; what is proved then holds for the file: "
        f"ask it in production, or {OTHER_WAY}"
    )


def _of_sklearn(model: Any, real: BlackBox, kind: str) -> tuple[Any, dict[str, str]]:
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
    return made, {
        CLASSES_KEY: json.dumps(np.asarray(model.classes_).tolist()),
        MISSING_KEY: "",
        DIGITS_KEY: str(DIGITS),
    }


def _with_facts(graph: Any, facts: dict[str, str]) -> bytes:
    made = copy.deepcopy(graph)
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
    elif not texts and not _takes_columns(model):
        model = _behind(maker, {}, model)
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
    """Every transformer with the columns of the table that reach it, up to the first that makes new
    ones."""
    found: list[tuple[Any, tuple[str, ...]]] = []
    if hasattr(model, "steps"):
        for _, step in model.steps:
            found += _parts(step, columns)
            if not hasattr(step, "statistics_"):
                columns = ()
    elif hasattr(model, "transformers_"):
        for _, part, chosen in model.transformers_:
            if not isinstance(part, str):
                found += _parts(part, chosen_names(chosen, columns))
    else:
        found.append((model, columns))
    return found


def _with_codes(model: Any, maker: FrameMaker, texts: list[str]) -> Any:
    """A pipeline that turns texts into the codes on which a booster splits, and the booster."""
    from sklearn.preprocessing import OrdinalEncoder

    learnt = getattr(getattr(model, "_Booster", None), "pandas_categorical", None)
    if getattr(model, "steps", None) or learnt is None:
        raise ModelError(
            f"'{type(final_estimator(model)).__name__}' splits on pandas categories, which no "
            f"converter writes; encode them in a pipeline (OrdinalEncoder or OneHotEncoder), or "
            f"{OTHER_WAY}"
        )
    codes = {
        name: OrdinalEncoder(
            categories=[list(map(str, categories))],
            handle_unknown="use_encoded_value",
            unknown_value=np.nan,
        )
        for name, categories in zip(texts, learnt, strict=True)
    }
    return _behind(maker, codes, model)


def _takes_columns(model: Any) -> bool:
    """Whether a model begins with what takes a table's columns apart, as converters need it."""
    steps = getattr(model, "steps", None)
    first = steps[0][1] if steps else model
    return hasattr(first, "transformers_")


def _behind(maker: FrameMaker, codes: dict[str, Any], model: Any) -> Any:
    """A pipeline that joins the table's columns, some of them encoded, for a model."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    parts = [(name, codes.get(name, "passthrough"), [name]) for name in maker.columns]
    some = maker(probe_states(maker.space, 4, np.random.default_rng(0)))
    return Pipeline([("columns", ColumnTransformer(parts).fit(some)), ("model", model)])


def _register_boosters(model: Any) -> None:
    """Tell skl2onnx about the boosters inside a model: those it has no converter for, or one that
    hands numpy's own numbers to a library that takes Python's."""
    kinds = [type(part) for part, _ in _parts(model, ())]
    names = {kind.__module__.split(".")[0] for kind in kinds} | {kind.__name__ for kind in kinds}
    wanted = {
        "lightgbm": _lightgbm,
        "xgboost": _xgboost,
        "HistGradientBoostingClassifier": _hist_gradient_boosting,
    }
    for name in names & set(wanted):
        register = require("skl2onnx").update_registered_converter
        kind, convert = wanted[name]()
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

    def convert(scope: Any, operator: Any, container: Any) -> None:
        # The columns arrive put together, and the converter knows no other names then.
        operator.raw_operator.get_booster().feature_names = None
        module.convert_xgboost(scope, operator, container)

    return require("xgboost").XGBClassifier, convert


def _hist_gradient_boosting() -> tuple[Any, Callable[..., Any]]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    module = require("skl2onnx.operator_converters.random_forest")

    def convert(scope: Any, operator: Any, container: Any) -> None:
        add = container.add_node

        def add_plain(*positions: Any, **facts: Any) -> Any:
            return add(*positions, **{key: _plain_numbers(value) for key, value in facts.items()})

        container.add_node = add_plain
        try:
            module.convert_sklearn_random_forest_classifier(scope, operator, container)
        finally:
            container.add_node = add

    return HistGradientBoostingClassifier, convert


def _plain_numbers(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    plain = [number.item() if isinstance(number, np.generic) else number for number in value]
    return [int(number) if isinstance(number, bool) else number for number in plain]


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


def _of_torch(module: Any, real: BlackBox) -> tuple[Any, dict[str, str]]:
    """A torch module by its own exporter, with its columns and its kind of output."""
    import io

    torch, onnx = require("torch"), require("onnx")
    function = cast(TorchScores, real.function)
    if not isinstance(function.encode, Inputs):
        raise ModelError("'encode' cannot be written as ONNX; declare the columns as 'inputs'")
    parameter = next(iter(module.parameters()), None)
    some = torch.as_tensor(function.probe_inputs()[:2])
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
    return onnx.load_model_from_string(file.getvalue()), facts
