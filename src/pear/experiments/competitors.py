"""Which method gives whom a plan, and at what cost? (Paper, table eval-results)"""

from __future__ import annotations

from typing import Any

from pear.experiments.experiment import Experiment, Material, Report
from pear.experiments.profiles import COMPETITORS, EXACT, PEAR, SLICES, Profile
from pear.experiments.registry import dataset_label, find_method
from pear.experiments.runner import make_tasks
from pear.experiments.summary import final, optimum_of
from pear.experiments.tables import result_tables
from pear.experiments.tasks import Task
from pear.experiments.user_by_user import user_by_user
from pear.experiments.worlds import World


def tasks(profile: Profile) -> list[Task]:
    """All methods on all users, T questions of k = 2."""
    methods = (*profile.only(COMPETITORS), *profile.only((*PEAR, *SLICES)), *profile.only(EXACT))
    return make_tasks(profile, (*methods, *profile.own()))


def report(material: Material) -> Report:
    """Tables beside the paper's, and the published users one by one."""
    tables, differences = result_tables(
        "competitors", "Methods compared", "eval-results", material.rows
    )
    single, data = user_by_user(material)
    return Report(
        "Which method gives whom a plan, and at what cost?",
        (*protocol_words(material), *source_words(material)),
        (*tables, *single),
        (),
        tuple(differences),
        data,
    )


def protocol_words(material: Material) -> tuple[str, ...]:
    """What the methods are given, and what a run reseeds."""
    reseeds: dict[str, list[str]] = {}
    for name in dict.fromkeys(material.rows["method"].tolist()):
        method: Any = find_method(name)
        reseeds.setdefault(getattr(method, "reseeds", "?"), []).append(
            getattr(method, "label", name)
        )
    changed = "; ".join(f"{what}: {', '.join(names)}" for what, names in reseeds.items())
    return (
        "Methods that ask nothing are given the mean weights of the prior; PEAR and XPEAR ask "
        f"{material.profile.questions} questions of k = 2 plans. Every cost is under the user's "
        "true weights. *Exact, true weights* is the optimum meant wherever we say so: the cheapest "
        "plan with at most five changes, each feature changed at most once (where 200,000 rows do "
        "not suffice to prove it, the cheapest found). The published action space lets a feature "
        "be changed again; *Exact, true weights, repeats* is the optimum with that, and methods "
        "that may do so (FARE, W-FARE and so PEAR, the automata, MCTS, RL) can fall below the "
        f"first: {_below(material)}.",
        "PEAR (NL) and (L) lead the paper's conversation over W-FARE: each question from the state "
        "after the first step chosen before, candidates for the mean of the posterior. The "
        "posterior is the paper's, sampled by particles; the paper's ensemble slice sampling is "
        "the method `pear-slices-l`, in profile full only, for it takes seconds per question. "
        "PEAR (exact) leads ours over the certified search.",
        f"What a run reseeds: {changed}. No run reseeds the data split, the classifier, the "
        "users, their weights, or a policy's training. (The published program trains the policies "
        "of FARE, EFARE, RL and MCTS anew for each run, so its spread contains that; W-FARE's it "
        "does not.)",
    )


def source_words(material: Material) -> tuple[str, ...]:
    """Where classifiers and users come from."""
    keys = dict.fromkeys(
        zip(
            material.rows["dataset"],
            material.rows["classifier"],
            material.rows["users"],
            strict=True,
        )
    )
    words = []
    for dataset, classifier, users in keys:
        world = material.worlds[f"{dataset.replace(':', '.')}-{classifier}-{users}"]
        name = f"{dataset_label(dataset)}, {users.title()} ({classifier})"
        words.append(f"{name}: {world.source}{_tied(world)}.")
    return ("Sources. " + " ".join(words),)


def _tied(world: World) -> str:
    """How many users share the lowest score, where they are many."""
    lowest = int((world.scores < world.scores.min() + 1e-9).sum())
    if lowest < len(world.scores) / 10:
        return ""
    return (
        f" ({lowest} of the {len(world.scores)} users have the same, lowest score: the classifier "
        "is flat there, and the score does not tell who of them is harder to help)"
    )


def _below(material: Material) -> str:
    """For how many users some method's plan is cheaper than the optimum of single changes."""
    rows = final(material.rows)
    keys = ["dataset", "classifier", "users", "user"]
    optimum = optimum_of(rows).rename("optimum").reset_index()
    paired = rows[rows["success"]].merge(optimum, on=keys)
    told = []
    for (dataset, users), part in paired.groupby(["dataset", "users"], sort=False):
        asked = part[part["method"].isin(PEAR)]
        below = asked[asked["cost"] < asked["optimum"] - 1e-6]["user"].nunique()
        where = f"{dataset_label(str(dataset))}, {str(users).title()}"
        told.append(f"PEAR for {below} of {part['user'].nunique()} users of {where}")
    return "; ".join(told) or "none here"


EXPERIMENT = Experiment("competitors", tasks, report)
