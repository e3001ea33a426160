"""How does a record become the model's own input? As declared or known from the model, never
guessed.

What costs see (the ``scale`` of a feature) plays no part here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pear.arrays import Flags, Floats, Indices
from pear.errors import InvalidSetting, ModelError
from pear.problem.features import FeatureSpace, States
from pear.problem.model_inputs import ModelInput


@dataclass(frozen=True)
class Inputs:
    """States as the matrix of numbers that a model takes: its declared columns, in order.

    >>> from pear.problem import Feature
    >>> space = FeatureSpace((Feature("income"), Feature("job", "categorical",
    ...                                                  categories=("none", "part", "full"))))
    >>> inputs = Inputs(space, (ModelInput("job", encoding="one_hot", categories=("full", "part")),
    ...                         ModelInput("income", subtract=1000.0, divide=500.0)))
    >>> inputs.names, inputs(space.encode([{"income": 2000.0, "job": "part"}]))
    (('job_full', 'job_part', 'income'), array([[0., 1., 2.]]))
    """

    space: FeatureSpace
    columns: tuple[ModelInput, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if not self.columns:
            raise InvalidSetting("'inputs' must list at least one input of the model")
        for declared in self.columns:
            if not isinstance(declared, ModelInput):
                raise InvalidSetting(f"'inputs' must be a list of ModelInput (got {declared!r})")
            declared.check(self.space[declared.source])
        texts = [
            column.column
            for column in self.columns
            if column.encoding == "value" and self.space[column.source].is_categorical
        ]
        if texts:
            raise ModelError(
                f"the model takes numbers, and {', '.join(texts)} are categories: declare in "
                '[model.inputs] whether each is encoding = "one_hot" or "code"'
            )
        twice = {name for name in self.names if self.names.count(name) > 1}
        if twice:
            raise InvalidSetting(f"'inputs' has the column {sorted(twice)[0]!r} twice; rename one")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, one per number."""
        return tuple(
            name for column in self.columns for name in column.names(self.space[column.source])
        )

    @property
    def number_names(self) -> frozenset[str]:
        """The names of the columns that hold numbers, not zeros and ones."""
        return frozenset(c.column for c in self.columns if c.encoding in ("value", "code"))

    @property
    def width(self) -> int:
        """How many numbers the model takes."""
        return len(self.names)

    @cached_property
    def _layout(self) -> _Layout:
        return _Layout.of(self)

    def __call__(self, states: States) -> Floats:
        """The model's input for states ``(n, d)``, shape ``(n, width)``."""
        layout, states = self._layout, np.atleast_2d(states)
        # The last column takes what has no column of its own: missing and left-out categories.
        encoded = np.zeros((len(states), self.width + 1))
        if len(layout.blocks):
            codes = states[:, layout.blocks]
            codes = np.where(np.isnan(codes), layout.places.shape[1] - 1, codes).astype(np.intp)
            places = layout.places[np.arange(len(layout.blocks)), codes]
            encoded[np.arange(len(states))[:, None], places] = 1.0
        for place, feature, table in layout.tables:
            codes = states[:, feature]
            encoded[:, place] = table[np.where(np.isnan(codes), len(table) - 1, codes).astype(int)]
        for place, feature in layout.gaps:
            encoded[:, place] = np.isnan(states[:, feature])
        numbers = states[:, layout.numbers]
        if layout.fills.any():
            numbers = np.where(np.isnan(numbers) & layout.fills, layout.missing, numbers)
        numbers = (numbers - layout.subtract) / layout.divide
        if layout.clip.any():
            numbers = np.where(layout.clip, np.clip(numbers, 0.0, 1.0), numbers)
        encoded[:, layout.number_places] = numbers
        return encoded[:, :-1]

    def encode_record(self, record: dict[str, object]) -> list[float]:
        """The same for one record, value by value."""
        numbers: list[float] = []
        for column in self.columns:
            numbers += column.number(self.space[column.source], record[column.source])
        return numbers


MatrixScores = tuple[Inputs, Callable[[Floats], Floats]]
"""Declared columns, and a model's own answers for rows of them."""


@dataclass(frozen=True)
class _Layout:
    """Where each number goes, and what is done to it.

    ``numbers`` (features) and ``number_places`` (columns) are those of plain numbers; ``blocks``
    the features of one-hot blocks, whose ``places`` ``(blocks, most categories + 1)`` hold the
    column of each category, the last one that of a missing value; ``tables`` are column, feature
    and the number of each category, the last that of a missing value; ``gaps`` column and feature
    of the columns that tell whether a value is missing.
    """

    numbers: Indices
    number_places: Indices
    missing: Floats
    fills: Flags
    subtract: Floats
    divide: Floats
    clip: Flags
    blocks: Indices
    places: Indices
    tables: tuple[tuple[int, int, Floats], ...]
    gaps: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, inputs: Inputs) -> _Layout:
        space, width = inputs.space, inputs.width
        numbers: list[ModelInput] = []
        number_places: list[int] = []
        blocks: list[tuple[int, dict[str, int], ModelInput]] = []
        tables: list[tuple[int, int, Floats]] = []
        gaps: list[tuple[int, int]] = []
        place = 0
        for column in inputs.columns:
            feature, names = space[column.source], column.names(space[column.source])
            if column.encoding == "one_hot":
                chosen = column.categories or feature.categories
                own = dict(zip(chosen, range(place, place + len(chosen)), strict=True))
                blocks.append((space.index(feature.name), own, column))
            elif column.encoding == "is_missing":
                gaps.append((place, space.index(feature.name)))
            elif feature.is_categorical:
                values = [*feature.categories, None]
                table = np.array([column.number(feature, value)[0] for value in values])
                tables.append((place, space.index(feature.name), table))
            else:
                numbers.append(column)
                number_places.append(place)
            place += len(names)
        most = max((len(space.features[feature].categories) for feature, _, _ in blocks), default=0)
        places = np.full((len(blocks), most + 1), width, np.intp)
        for row, (index, own, column) in zip(places, blocks, strict=True):
            for code, category in enumerate(space.features[index].categories):
                row[code] = own.get(category, width)
            if column.missing is not None:
                row[-1] = own.get(str(column.missing), width)
        fills = [np.nan if c.missing is None else float(c.missing) for c in numbers]
        return cls(
            numbers=np.array([space.index(c.source) for c in numbers], np.intp),
            number_places=np.array(number_places, np.intp),
            missing=np.array(fills, float),
            fills=np.array([c.missing is not None for c in numbers], bool),
            subtract=np.array([c.subtract for c in numbers], float),
            divide=np.array([c.divide for c in numbers], float),
            clip=np.array([c.clip for c in numbers], bool),
            blocks=np.array([feature for feature, _, _ in blocks], np.intp),
            places=places,
            tables=tuple(tables),
            gaps=tuple(gaps),
        )


def same_numbers(left: Floats, right: Floats) -> Flags:
    """Where two arrays hold the same number, or a missing one each."""
    return np.asarray((left == right) | (np.isnan(left) & np.isnan(right)))


def unit_inputs(space: FeatureSpace, scales: FeatureSpace | None = None) -> Inputs:
    """Numbers on [0, 1] and one-hot categories, in feature order: what our own models take.

    The ends of the numbers are those of ``scales`` (left out: of ``space``) as they are now; the
    inputs do not follow when somebody changes what costs see later.
    """
    columns = []
    for feature in (scales or space).features:
        if feature.is_categorical:
            columns.append(ModelInput(feature.name, encoding="one_hot"))
            continue
        low, high = feature.scale or (0.0, 1.0)
        columns.append(
            ModelInput(
                feature.name,
                subtract=low,
                divide=high - low,
                clip=feature.scale is not None,
                missing=feature.missing_counts_as,
            )
        )
    return Inputs(space, tuple(columns))


def feature_order(space: FeatureSpace) -> Inputs | None:
    """The features as they are, in their order; None where some are categories."""
    if any(feature.is_categorical for feature in space.features):
        return None
    return Inputs(space, tuple(ModelInput(name) for name in space.names))


def dummy(space: FeatureSpace, column: str) -> ModelInput | None:
    """The input that a column of :func:`pandas.get_dummies` is, by its name: ``job_part``, or
    ``job_nan`` for a missing one.

    >>> from pear.problem import Feature
    >>> space = FeatureSpace((Feature("job", "categorical", categories=("none", "part")),))
    >>> dummy(space, "job_part").categories, dummy(space, "job_full")
    (('part',), None)
    """
    found = [
        (feature.name, category)
        for feature in space.features
        if feature.is_categorical
        for category in feature.categories
        if column == f"{feature.name}_{category}"
    ]
    gone = [feature.name for feature in space.features if column == f"{feature.name}_nan"]
    if len(found) + len(gone) != 1:
        return None
    if gone:
        return ModelInput(column, gone[0], "is_missing")
    [(name, category)] = found
    return ModelInput(column, name, "one_hot", (category,))


def sources_of(
    names: Sequence[str], declared: Sequence[ModelInput], space: FeatureSpace
) -> tuple[dict[str, ModelInput], list[str], list[str]]:
    """What each named column of a model is made of: one input of one column each.

    It is what is declared for it, else the feature of its name (skl2onnx and LightGBM write other
    signs as underscores), else one category of a feature in the spelling of
    :func:`pandas.get_dummies`. Also returned are the names of which nothing is
    known, and the declared ones that the model does not have.
    """
    stated: dict[str, ModelInput] = {}
    for entry in declared:
        feature = space[entry.source]
        if entry.encoding != "one_hot":
            stated[entry.column] = entry
            continue
        chosen = entry.categories or feature.categories
        for name, category in zip(entry.names(feature), chosen, strict=True):
            stated[name] = ModelInput(
                name, feature.name, "one_hot", (category,), missing=entry.missing
            )
    spelled: dict[str, list[str]] = {}
    for feature_name in space.names:
        spelled.setdefault(plain_name(feature_name), []).append(feature_name)
    found: dict[str, ModelInput] = {}
    unknown: list[str] = []
    plain = [plain_name(name) for name in names]
    for name, spelt in zip(names, plain, strict=True):
        # Two columns of one spelling are two things, of which the problem may know one.
        same = spelled.get(spelt, []) if plain.count(spelt) == 1 else []
        same = [name] if name in space.names else same
        source = stated.get(name) or (
            ModelInput(name, same[0]) if len(same) == 1 else dummy(space, name)
        )
        if source:
            found[name] = source
        else:
            unknown.append(name)
    return found, unknown, [name for name in stated if name not in names]


def plain_name(name: str) -> str:
    """A name in letters, digits and underscores, as some libraries keep it.

    >>> plain_name("monthly income (€)")
    'monthly_income____'
    """
    return re.sub(r"[^0-9A-Za-z_]", "_", name)


def what_to_declare(space: FeatureSpace) -> str:
    """What to write under ``[model.inputs]``, for a message."""
    shown = [f for f in space.features if f.is_number][:1]
    lines = [f"{feature.name} = {{ subtract = 0, divide = 1 }}" for feature in shown]
    texts = [f for f in space.features if f.is_categorical][:1]
    lines += [f'{feature.name} = {{ encoding = "one_hot" }}' for feature in texts]
    return (
        "declare in the problem, under [model.inputs], what each column is, in their order, such "
        f"as {' and '.join(lines) or 'the name of a feature'}"
    )
