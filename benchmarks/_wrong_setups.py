"""Set-ups that are wrong in ways that strangers get wrong, and the right ones beside them.

An invented lender whose model is known to be good; each set-up changes one thing. ``told`` does
what ``pear check --data`` does and returns the first line that refuses or warns, else nothing.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.svm import LinearSVC

from pear.decision import (
    from_endpoint,
    from_onnx,
    from_sklearn,
    from_torch,
    load_model,
    save_sklearn,
)
from pear.decision.table_checks import compare_with_labels, raw_cells_doubt
from pear.errors import PearError
from pear.problem import Action, Feature, Goal, Problem
from pear.problem.draft import draft_problem
from pear.problem.files import problem_from_toml, problem_to_toml
from pear.problem.model_inputs import Interface, ModelInput
from pear.problem.review import doubts_about
from pear.tables.people import labels_of, read_people
from pear.tables.reading import open_table

FOLDER = Path(tempfile.mkdtemp())
JOBS = ("none", "part", "full")


def people(n: int = 1_500) -> pd.DataFrame:
    """Invented applicants with the lender's decision in ``granted``."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "income": rng.gamma(5.0, 500.0, n).round().clip(0, 8_000),
            "payments": rng.gamma(2.0, 150.0, n).round().clip(0, 1_500),
            "years": rng.integers(0, 30, n),
            "job": rng.choice(JOBS, n, p=(0.3, 0.4, 0.3)),
            "owner": rng.choice(["no", "yes"], n),
        }
    )
    wish = frame.income / 1_000 - frame.payments / 150 + 0.05 * frame.years
    wish += frame.job.map({"none": -2.5, "part": 2.0, "full": 0.0})
    wish += np.where(frame.owner == "yes", 0.7, -0.7) + rng.logistic(0, 0.5, n)
    return frame.assign(granted=np.where(wish > np.quantile(wish, 0.35), "yes", "no"))


TABLE = people()
X, Y = TABLE.drop(columns="granted"), TABLE["granted"]
TEXTS, NUMBERS = ["job", "owner"], ["income", "payments", "years"]


def problem(**changes: Any) -> Problem:
    """The right problem; ``changes`` of features by name, or of the problem itself."""
    features = {
        "income": Feature("income", lower=0, scale=(0, 8_000), unit="€"),
        "payments": Feature("payments", lower=0, scale=(0, 1_500), unit="€"),
        "years": Feature("years", "integer", 0, 60, (0, 30)),
        "job": Feature("job", "categorical", categories=JOBS),
        "owner": Feature("owner", "categorical", categories=("no", "yes"), immutable=True),
    }
    given = {name: changes.pop(name) for name in list(changes) if name in features}
    actions = changes.pop("actions", None) or [
        Action("earn_more", "income", "add", (200, 400, 800), "increase", upper=8_000),
        Action("pay_off", "payments", "add", (-50, -100, -200), "decrease"),
        Action("work", "job", "set", ("part", "full")),
    ]
    goal = changes.pop("goal", Goal(("yes",), target="granted"))
    return Problem(list((features | given).values()), actions, goal=goal, **changes)


@dataclass
class Setup:
    """A problem, a model (or where one is) and the table of people beside it."""

    problem: Problem
    model: Any
    table: pd.DataFrame = field(default_factory=lambda: TABLE)
    load: Callable[..., Any] = load_model
    settings: dict[str, Any] = field(default_factory=dict)


def told(make: Callable[[], Setup]) -> str:
    """The first line that refuses or warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            setup = make()
            path = FOLDER / "people.csv"
            setup.table.to_csv(path, index=False)
            known = read_people(path, setup.problem.space)
            black_box = setup.load(setup.model, setup.problem, **setup.settings)
            found = [known.bad_words(), *black_box.doubts]
            found += doubts_about(setup.problem, known.states)
            cells = next(open_table(path).chunks(500)).frame
            found.append(raw_cells_doubt(black_box, cells, known))
            target = setup.problem.goal.target
            labels = labels_of(path, target, known.rows) if target else None
            if labels is not None:
                compared = compare_with_labels(black_box, known.states, labels, target)
                found += [compared] if isinstance(compared, str) else compared.doubts()
            return next((line for line in found if line), "")
        except PearError as error:
            return str(error).splitlines()[0]


def front() -> Any:
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), TEXTS),
        remainder=StandardScaler(),
    )


def fitted(final: Any = None, y: Any = Y, x: pd.DataFrame = X) -> Any:
    final = LogisticRegression(max_iter=500) if final is None else final
    return make_pipeline(front(), final).fit(x, y)


def scores(model: Any, label: Any = "yes") -> Callable[[Any], Any]:
    """The pipeline as a function of states, for wrapping."""
    column = list(model.classes_).index(label)
    return lambda states: model.predict_proba(problem().space.frame(states))[:, column]


def standardised() -> tuple[np.ndarray, tuple[ModelInput, ...]]:
    """The matrix of a stranger's array model, and the declaration that describes it."""
    scaler = StandardScaler().fit(X[NUMBERS])
    dummies = pd.get_dummies(X[TEXTS])[
        ["job_none", "job_part", "job_full", "owner_no", "owner_yes"]
    ]
    declared = [
        ModelInput(name, subtract=float(mean), divide=float(spread))
        for name, mean, spread in zip(NUMBERS, scaler.mean_, scaler.scale_, strict=True)
    ]
    declared += [ModelInput(name, encoding="one_hot") for name in TEXTS]
    return np.hstack([scaler.transform(X[NUMBERS]), dummies.to_numpy(float)]), tuple(declared)


def arrays(inputs: tuple[ModelInput, ...] = (), **changes: Any) -> Setup:
    """A model of an array, with what is declared of it."""
    matrix, _ = standardised()
    model = LogisticRegression(max_iter=500).fit(matrix, Y)
    return Setup(problem(interface=Interface(inputs), **changes), model)


DECLARED = standardised()[1]


def numbers_only() -> tuple[Problem, pd.DataFrame]:
    """The problem of the three numbers alone."""
    features = [f for f in problem().space.features if f.is_number]
    actions = [a for a in problem().actions.actions if a.feature != "job"]
    goal = Goal(("yes",), target="granted")
    return Problem(features, actions, goal=goal), TABLE[[*NUMBERS, "granted"]]


def network(*last: Any) -> Any:
    """A torch network of the declared columns, trained; what is given comes after it."""
    import torch

    torch.manual_seed(0)
    matrix = torch.tensor(standardised()[0], dtype=torch.float32)
    target = torch.tensor((Y == "yes").to_numpy(), dtype=torch.float32)
    module = torch.nn.Sequential(torch.nn.Linear(matrix.shape[1], 8), torch.nn.ReLU())
    module.append(torch.nn.Linear(8, 1))
    optimiser = torch.optim.Adam(module.parameters(), lr=0.05)
    for _ in range(150):
        optimiser.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(module(matrix)[:, 0], target)
        loss.backward()
        optimiser.step()
    return torch.nn.Sequential(module, *last) if last else module


def torch_setup(module: Any, inputs: tuple[ModelInput, ...] = DECLARED, **settings: Any) -> Setup:
    return Setup(problem(), module, load=from_torch, settings={"inputs": inputs, **settings})


def two_columns(flipped: bool) -> Any:
    """The network with a column of logits for each class."""
    import torch

    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network()

        def forward(self, inputs: Any) -> Any:
            logit = self.inner(inputs)
            return torch.cat([logit, -logit] if flipped else [-logit, logit], dim=1)

    return Both()


class Sampled:
    """A model of chance: each call another answer."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def __call__(self, states: Any) -> Any:
        return np.clip(scores(fitted())(states) + self.rng.normal(0, 0.01, len(states)), 0, 1)


def ranks(states: Any) -> Any:
    found = scores(fitted())(states)
    return (found.argsort().argsort() + 0.5) / len(found)


def trained_on_codes() -> Setup:
    encoder = OrdinalEncoder(categories=[list(JOBS), ["no", "yes"]])
    table = X.assign(**dict(zip(TEXTS, encoder.fit_transform(X[TEXTS]).T, strict=True)))
    return Setup(problem(), RandomForestClassifier(20, random_state=0).fit(table, Y))


def scaled_outside() -> Setup:
    """Standardised by the owner's own program, in front of the model that is handed over."""
    table = X.assign(**{name: (X[name] - X[name].mean()) / X[name].std() for name in NUMBERS})
    return Setup(problem(), fitted(x=table))


def with_gaps() -> pd.DataFrame:
    gone = np.random.default_rng(5).random(len(TABLE)) < 0.2
    return TABLE.assign(income=TABLE["income"].mask(gone))


def gaps_model() -> Any:
    """Gradient boosting that learnt that a missing income is a bad sign."""
    table = with_gaps().drop(columns="granted").astype(dict.fromkeys(TEXTS, "category"))
    good = np.where(table["income"].isna(), "no", Y)
    return HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(table, good), good


def gaps_filled(filled: bool) -> Setup:
    model, good = gaps_model()
    table = with_gaps().assign(granted=good)
    if filled:
        income = Feature("income", lower=0, scale=(0, 8_000), missing_counts_as=2_300.0)
        return Setup(problem(income=income), model, table)
    return Setup(problem(), model, table)


def old_key_missing() -> Setup:
    text = problem_to_toml(problem()).replace("[features.income]", "[features.income]\nmissing = 1")
    return Setup(problem_from_toml(text), fitted())


def cannot_take_missing() -> Setup:
    income = Feature("income", lower=0, scale=(0, 8_000), missing_counts_as=2_300.0)
    return Setup(problem(income=income), fitted())


def linear_onnx(output: str, logits: bool) -> bytes:
    """A file with one tensor: the array model, its numbers as logits or as probabilities."""
    import onnx

    matrix, _ = standardised()
    model = LogisticRegression(max_iter=500).fit(matrix, Y)
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["logit"])]
    nodes += [] if logits else [helper.make_node("Sigmoid", ["logit"], ["score"])]
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("x", kind, [None, matrix.shape[1]])],
        [helper.make_tensor_value_info(output, kind, [None, 1])],
        [
            onnx.numpy_helper.from_array(model.coef_.T.astype(np.float32), "w"),
            onnx.numpy_helper.from_array(model.intercept_.astype(np.float32), "b"),
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(made.SerializeToString())


def onnx_setup(content: bytes, inputs: tuple[ModelInput, ...], **settings: Any) -> Setup:
    return Setup(problem(), content, load=from_onnx, settings={"inputs": inputs, **settings})


def nameless_classes() -> Setup:
    """An array of two columns that nobody named, for a class named by a text."""
    import skl2onnx

    matrix, declared = standardised()
    from sklearn.neighbors import KNeighborsClassifier

    model = KNeighborsClassifier(9).fit(matrix, (Y == "yes").astype(int))
    made = skl2onnx.to_onnx(model, matrix[:1].astype(np.float32), options={"zipmap": False})
    return onnx_setup(made.SerializeToString(), declared)


@contextlib.contextmanager
def _served(reply: Callable[[list[Any]], Any]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            content = json.dumps(reply(asked["records"])).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/score"
    finally:
        server.shutdown()
        server.server_close()


def endpoint(reply: Callable[[list[Any]], Any]) -> Setup:
    def load(model: Any, stated: Problem, **settings: Any) -> Any:
        with _served(reply) as url:
            black_box = from_endpoint(url, stated)
            black_box.probe(stated.states(TABLE.drop(columns="granted").iloc[:3]))
            # What is asked later is answered here: only what it says at load matters.
            black_box.function = lambda states: scores(fitted())(states)  # type: ignore[assignment]
            return black_box

    return Setup(problem(), None, load=load)


def answered(records: list[Any]) -> Any:
    return fitted().predict(pd.DataFrame(records))


def spoilt(name: str) -> Setup:
    """A file of a kind that is not loaded."""
    (FOLDER / name).write_bytes(b"\x80\x04")
    return Setup(problem(), str(FOLDER / name))


class Trick:
    """A type that a stranger's file may hold."""

    def __init__(self) -> None:
        self.classes_ = np.array(["no", "yes"])

    def predict_proba(self, table: Any) -> Any:
        return np.full((len(table), 2), 0.5)


def unknown_type() -> Setup:
    return Setup(problem(), str(save_sklearn(Trick(), FOLDER / "trick.skops")))


def same_ids() -> Setup:
    return Setup(problem(), fitted(), TABLE.assign(id=7))


def spreadsheet() -> Setup:
    path = FOLDER / "people.xlsx"
    path.write_bytes(b"PK\x03\x04")
    read_people(path, problem().space)
    return Setup(problem(), fitted())


def other_columns(order: list[str]) -> Setup:
    """A model fitted on a bare array whose columns are in another order than the features."""
    stated, table = numbers_only()
    model = RandomForestClassifier(40, random_state=0).fit(table[order].to_numpy(), Y)
    return Setup(stated, model, table)


def changed(inputs: tuple[ModelInput, ...], place: int, **settings: Any) -> tuple[ModelInput, ...]:
    return (*inputs[:place], replace(inputs[place], **settings), *inputs[place + 1 :])


def constant_setup() -> Setup:
    return Setup(problem(), lambda states: np.full(len(states), 0.4))


def nan_for_some() -> Setup:
    right = scores(fitted())
    return Setup(problem(), lambda s: np.where(s[:, 0] > 7_000, np.nan, right(s)))


def squashed(states: Any) -> Any:
    return 1 / (1 + np.exp(-scores(fitted())(states)))


def noise() -> Setup:
    shuffled = Y.sample(frac=1, random_state=1).to_numpy()
    return Setup(problem(), fitted(RandomForestClassifier(30, random_state=0), y=shuffled))


def several_problems() -> Setup:
    stated, _ = numbers_only()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[NUMBERS], Y)
    other = problem()
    boxes = [from_sklearn(fitted(), other), from_sklearn(model, stated)]
    return Setup(other, boxes)


def misspelt() -> Setup:
    """The problem spells the categories otherwise than the table the model learnt from."""
    job = Feature("job", "categorical", categories=("None", "Part", "Full"))
    actions = [a for a in problem().actions.actions if a.feature != "job"]
    table = TABLE.assign(job=TABLE["job"].str.capitalize())
    return Setup(problem(job=job, actions=actions), fitted(), table)


def truth_values() -> Setup:
    owner = Feature("owner", "boolean", immutable=True)
    return Setup(problem(owner=owner), fitted(), TABLE.assign(owner=TABLE["owner"] == "yes"))


def uncertain_class() -> Setup:
    table = TABLE.rename(columns={"granted": "outcome"})
    return Setup(draft_problem(table, "outcome").problem, fitted(), table)


def feared_class() -> Setup:
    table = TABLE.assign(refused=np.where(Y == "yes", "no", "yes")).drop(columns="granted")
    stated = problem(goal=Goal(("yes",), target="refused"))
    return Setup(stated, fitted(y=table["refused"]), table)


def protected_action() -> Setup:
    free = Feature("owner", "categorical", categories=("no", "yes"))
    table = TABLE.rename(columns={"owner": "married"})
    married = replace(free, name="married")
    features = [*(f for f in problem().space.features if f.name != "owner"), married]
    actions = [*problem().actions.actions, Action("marry", "married", "set", ("yes",))]
    stated = Problem(features, actions, goal=problem().goal)
    columns = table.drop(columns="granted")
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["job", "married"]), remainder=StandardScaler()
    )
    model = make_pipeline(encoder, LogisticRegression(max_iter=500)).fit(columns, Y)
    return Setup(stated, model, table)


def narrow_scale() -> Setup:
    income = Feature("income", lower=0, scale=(0, 10), unit="€")
    return Setup(problem(income=income), fitted())


def other_target() -> Setup:
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(sparse_output=False), ["job"]), remainder="drop"),
        LogisticRegression(),
    ).fit(X, np.where(np.arange(len(X)) % 2, "yes", "no"))
    return Setup(problem(), model)


def threshold_of_percent() -> Setup:
    return Setup(problem(goal=Goal(("yes",), 0.995, target="granted")), fitted())


def boosted_with_texts() -> Setup:
    from catboost import CatBoostClassifier

    job = Feature("job", "categorical", categories=JOBS, missing_counts_as="none")
    model = CatBoostClassifier(
        iterations=20, cat_features=TEXTS, verbose=0, allow_writing_files=False
    )
    return Setup(problem(job=job), model.fit(X, Y))


def with_regressor() -> Setup:
    table = pd.get_dummies(X, dtype=float)
    return Setup(problem(), LinearRegression().fit(table, (Y == "yes").astype(float)))


def regressor_scores() -> Setup:
    stated, table = numbers_only()
    stated = replace(stated, goal=Goal((), target="granted"))
    return Setup(stated, LinearRegression().fit(X[NUMBERS], (Y == "yes").astype(float)), table)


def in_training_mode() -> Any:
    import torch

    class Batched(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network()
            self.norm = torch.nn.BatchNorm1d(8, track_running_stats=False)

        def forward(self, inputs: Any) -> Any:
            return self.inner(self.norm(inputs))

    return Batched()


def dropping_out() -> Any:
    import torch

    class Dropping(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network()

        def forward(self, inputs: Any) -> Any:
            return self.inner(torch.nn.functional.dropout(inputs, 0.3, training=True))

    return Dropping()


def sigmoid() -> Any:
    import torch

    return torch.nn.Sigmoid()


def as_texts() -> Setup:
    """Numbers that a pipeline turns into texts, drafted as truth values and whole numbers."""
    table = TABLE.assign(owner=(TABLE["owner"] == "yes").astype(int))
    texts = make_pipeline(
        FunctionTransformer(lambda part: part.astype(str)), OneHotEncoder(handle_unknown="ignore")
    )
    model = make_pipeline(
        make_column_transformer((texts, ["owner", "years"]), (StandardScaler(), ["income"])),
        LogisticRegression(max_iter=500),
    )
    columns = table[["income", "years", "owner"]]
    stated = draft_problem(columns.assign(granted=Y), "granted", favourable="yes").problem
    return Setup(stated, model.fit(columns, Y), columns.assign(granted=Y))


def codes_of_categories() -> Setup:
    """The codes of pandas categories, whose order in training no problem tells."""
    jobs = pd.CategoricalDtype(["part", "none", "full"])
    codes = FunctionTransformer(lambda rows: rows.assign(job=rows["job"].cat.codes))
    model = make_pipeline(codes, RandomForestClassifier(20, random_state=0))
    columns = X[["income", "payments", "job"]]
    features = [f for f in problem().space.features if f.name in columns]
    stated = Problem(features, problem().actions.actions, goal=problem().goal)
    return Setup(stated, model.fit(columns.astype({"job": jobs}), Y), TABLE)


def by_place() -> Setup:
    """A wrapper that remembers no columns and reads them by their place."""
    order = ["years", "income", "payments"]
    stated, table = numbers_only()
    inner = RandomForestClassifier(40, random_state=0).fit(table[order].to_numpy(), Y)

    class Wrapped:
        classes_ = inner.classes_

        def predict_proba(self, rows: Any) -> Any:
            return inner.predict_proba(np.asarray(rows))

    return Setup(stated, Wrapped(), table)


def whole_input() -> Setup:
    """A file whose input of whole numbers would cut off what is behind the comma."""
    import onnx

    made = onnx.load_model_from_string(linear_onnx("score", False))
    made.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    cast = onnx.helper.make_node("Cast", ["x"], ["x_f"], to=onnx.TensorProto.FLOAT)
    made.graph.node[0].input[0] = "x_f"
    made.graph.node.insert(0, cast)
    return onnx_setup(made.SerializeToString(), DECLARED)


def codes_of_one_batch() -> Setup:
    """Categories coded by what happens to be in the batch: a single record is always the first."""
    codes = FunctionTransformer(
        lambda rows: rows.assign(
            **{name: rows[name].astype("category").cat.codes for name in TEXTS}
        )
    )
    return Setup(problem(), make_pipeline(codes, RandomForestClassifier(20)).fit(X, Y))


def booster() -> Setup:
    import lightgbm

    stated, table = numbers_only()
    data = lightgbm.Dataset(table[NUMBERS], (Y == "yes").astype(int))
    return Setup(stated, lightgbm.train({"objective": "binary", "verbose": -1}, data, 10), table)


def renamed() -> Setup:
    table = X[NUMBERS].rename(columns={"income": "MonthlyIncome"})
    return Setup(problem(), make_pipeline(StandardScaler(), LogisticRegression()).fit(table, Y))


def several_classes() -> Any:
    return np.where(Y == "no", "no", np.where(X["income"] > 2_500, "gold", "silver"))


RIGHT: dict[str, Callable[[], Setup]] = {
    "a pipeline": lambda: Setup(problem(), fitted()),
    "a forest in a pipeline": lambda: Setup(
        problem(), fitted(RandomForestClassifier(30, min_samples_leaf=5, random_state=0))
    ),
    "an array, declared": lambda: arrays(DECLARED),
    "a network, declared": lambda: torch_setup(network()),
    "a network that ends in a sigmoid, said so": lambda: torch_setup(
        network(sigmoid()), output="probabilities"
    ),
    "two columns with their classes": lambda: torch_setup(
        two_columns(False), classes=("no", "yes")
    ),
    "a file of logits, said so": lambda: onnx_setup(
        linear_onnx("logit", True), DECLARED, output="logits"
    ),
    "a file of probabilities": lambda: onnx_setup(linear_onnx("score", False), DECLARED),
    "missing values the model knows": lambda: gaps_filled(True),
    "an imputer in the pipeline": lambda: Setup(
        problem(income=Feature("income", lower=0, scale=(0, 8_000), missing_counts_as=2_300.0)),
        make_pipeline(
            make_column_transformer(
                (SimpleImputer(), NUMBERS), (OneHotEncoder(sparse_output=False), TEXTS)
            ),
            LogisticRegression(max_iter=5_000),
        ).fit(with_gaps().drop(columns="granted"), Y),
        with_gaps(),
    ),
}

WRONG: dict[str, Callable[[], Setup]] = {
    "labels instead of scores": lambda: Setup(
        problem(), lambda s: (scores(fitted())(s) > 0.5).astype(float)
    ),
    "a classifier that only predicts": lambda: Setup(problem(), fitted(Predicts())),
    "an endpoint that answers labels": lambda: endpoint(
        lambda records: {"scores": (answered(records) == "yes").astype(int).tolist()}
    ),
    "an endpoint without scores": lambda: endpoint(lambda records: {"result": len(records)}),
    "an endpoint of one score for all": lambda: endpoint(lambda records: {"scores": [0.3]}),
    "classes reversed in a function": lambda: Setup(problem(), scores(fitted(), "no")),
    "classes reversed in two columns": lambda: torch_setup(
        two_columns(True), classes=("no", "yes")
    ),
    "a favourable class the model lacks": lambda: Setup(
        problem(goal=Goal(("approved",), target="granted")), fitted()
    ),
    "the class people fear as favourable": feared_class,
    "columns of output without names": nameless_classes,
    "three classes and no favourable one": lambda: Setup(
        problem(goal=Goal((), target="granted")), fitted(y=several_classes())
    ),
    "a favourable class left to be guessed": uncertain_class,
    "columns of an array in another order": lambda: other_columns(["years", "income", "payments"]),
    "columns declared in another order": lambda: arrays((*DECLARED[:3][::-1], *DECLARED[3:])),
    "a one-hot array not declared": lambda: arrays(),
    "a one-hot tensor not declared": lambda: onnx_setup(linear_onnx("score", False), ()),
    "a network not declared": lambda: torch_setup(network(), ()),
    "categories declared in another order": lambda: arrays(
        changed(DECLARED, 3, categories=("full", "none", "part"))
    ),
    "numbers declared without their scaling": lambda: arrays(
        tuple(replace(c, subtract=0.0, divide=1.0) for c in DECLARED)
    ),
    "a mean forgotten": lambda: arrays(changed(DECLARED, 0, subtract=0.0)),
    "thousands declared as units": lambda: arrays(changed(DECLARED, 0, divide=0.9)),
    "too few columns declared": lambda: arrays(DECLARED[1:]),
    "an input declared of no feature": lambda: arrays((*DECLARED, ModelInput("shoe_size"))),
    "scaled outside of the model": scaled_outside,
    "trained on codes, given texts": trained_on_codes,
    "a sigmoid twice in a network": lambda: torch_setup(network(sigmoid())),
    "a sigmoid twice in a file": lambda: onnx_setup(
        linear_onnx("score", False), DECLARED, output="logits"
    ),
    "a sigmoid twice in a function": lambda: Setup(problem(), squashed),
    "logits taken for probabilities": lambda: onnx_setup(linear_onnx("logit", True), DECLARED),
    "scores in percent": lambda: Setup(problem(), lambda s: 100 * scores(fitted())(s)),
    "a threshold nobody reaches": threshold_of_percent,
    "the scale of costs far too narrow": narrow_scale,
    "a model of noise": noise,
    "a model of another decision": other_target,
    "a constant model": constant_setup,
    "a model of chance": lambda: Setup(problem(), Sampled()),
    "dropout left on": lambda: torch_setup(dropping_out()),
    "normalised over the batch": lambda: torch_setup(in_training_mode()),
    "ranks among those asked about": lambda: Setup(problem(), ranks),
    "no number for some people": nan_for_some,
    "missing values not allowed by the problem": lambda: gaps_filled(False),
    "missing values filled in before the model": old_key_missing,
    "missing values the model cannot take": cannot_take_missing,
    "missing texts CatBoost cannot take": boosted_with_texts,
    "truth values where texts were learnt": truth_values,
    "categories spelt otherwise": misspelt,
    "columns the problem does not have": renamed,
    "numbers that become texts": as_texts,
    "codes of categories in another order": codes_of_categories,
    "categories coded by the batch": codes_of_one_batch,
    "columns read by their place": by_place,
    "whole numbers for decimals": whole_input,
    "a booster without its classifier": booster,
    "a regression instead of a classifier": with_regressor,
    "a regression on the features": regressor_scores,
    "a pickle": lambda: spoilt("model.pkl"),
    "torch's own file": lambda: spoilt("model.pt"),
    "a type nobody knows in a file": unknown_type,
    "models of different problems together": several_problems,
    "an id twice": same_ids,
    "a spreadsheet": spreadsheet,
    "an action on who somebody is": protected_action,
    "several classes without probabilities": lambda: Setup(
        problem(goal=Goal(("gold",), target="granted")), fitted(LinearSVC(), y=several_classes())
    ),
}


class Predicts:
    """A classifier with nothing but predict."""

    def fit(self, table: Any, y: Any) -> Predicts:
        self.inner = LogisticRegression(max_iter=500).fit(table, y)
        self.classes_ = self.inner.classes_
        return self

    def predict(self, table: Any) -> Any:
        return self.inner.predict(table)
