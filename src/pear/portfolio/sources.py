"""Which problem, model and prior does a command of the terminal mean?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from pear.errors import InvalidSetting
from pear.portfolio.worker import ModelPlace
from pear.preferences import GaussianMixturePrior, default_prior
from pear.problem import Problem
from pear.problem.files import model_location, prior_location, read_problem


def read_problem_and_model(
    path: Path, model: str | None, **options: Any
) -> tuple[Problem, ModelPlace]:
    """The problem of a file and where its model is: as asked for, else as the file states."""
    problem = read_problem(path)
    place = model or model_location(problem, path)
    if place is None:
        raise InvalidSetting(
            f"'{path}' names no model; give one with --model (a .onnx or .skops file, or an "
            "http(s) address), or write it into the problem"
        )
    return problem, ModelPlace(place, options)


def read_prior(problem: Problem, path: Path, prior: Path | None) -> GaussianMixturePrior:
    """The prior of a file, else the one the problem's file names, else the one it implies."""
    stated = prior_location(problem, path)
    place = prior or (Path(stated) if stated else None)
    if place is None:
        return default_prior(cast(Any, problem))
    try:
        content = json.loads(Path(place).read_text(encoding="utf-8"))
        found = GaussianMixturePrior.from_dict(content.get("prior", content))
    except FileNotFoundError:
        raise InvalidSetting(f"there is no prior '{place}'; 'pear fit-prior' makes one") from None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InvalidSetting(
            f"'{place}' cannot be read as a prior ({error}); 'pear fit-prior' makes one"
        ) from None
    if found.n_weights != len(problem.weight_names):
        raise InvalidSetting(
            f"the prior '{place}' is about {found.n_weights} weights and the problem has "
            f"{len(problem.weight_names)}; fit one for this problem with 'pear fit-prior'"
        )
    return found
