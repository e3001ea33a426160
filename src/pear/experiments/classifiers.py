"""Does it hold for other classifiers? (Paper, table eval-results-shallow)"""

from __future__ import annotations

from pear.experiments.competitors import source_words
from pear.experiments.experiment import Experiment, Material, Report
from pear.experiments.profiles import COMPETITORS, EXACT, PEAR, Profile
from pear.experiments.runner import make_tasks
from pear.experiments.tables import result_tables
from pear.experiments.tasks import Task


def tasks(profile: Profile) -> list[Task]:
    """All methods for logistic regression and a decision tree."""
    methods = (*profile.only(COMPETITORS), *profile.only(PEAR), *profile.only(EXACT))
    methods = tuple(name for name in methods if name not in profile.not_shallow)
    return [
        task
        for classifier in profile.classifiers
        for task in make_tasks(profile, (*methods, *profile.own()), classifier=classifier)
    ]


def report(material: Material) -> Report:
    """Tables beside the paper's."""
    tables, differences = result_tables(
        "classifiers", "Shallow classifiers", "eval-results-shallow", material.rows
    )
    words = source_words(material)
    people = {material.profile.people(name) for name in material.profile.classifiers}
    if people != {material.profile.users}:
        words += (
            f"The tables of this section are of the first {min(people)} users of each set, those "
            f"of the others of the first {material.profile.users}.",
        )
    if material.profile.not_shallow:
        words += (
            f"Not run here: {', '.join(material.profile.not_shallow)}. The learned ones need a "
            "policy trained for each of these classifiers.",
        )
    return Report(
        "Does it hold for other classifiers?", words, tuple(tables), (), tuple(differences)
    )


EXPERIMENT = Experiment("classifiers", tasks, report)
