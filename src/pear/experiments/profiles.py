"""How much of the paper's protocol does a run take?"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any

from pear.errors import InvalidSetting

COMPETITORS = ("fare", "cscf", "efare", "rl", "mcts", "face")
PEAR = ("pear-nl", "pear-l")
OTHERS = ("pear-published-l", "pear-slices-l")
"""PEAR (L) with the policy trained as published, and with the paper's sampler."""
EXACT = ("exact-mean", "pear-exact-nl", "pear-exact-l", "exact-true", "exact-repeats")
PATHS = ("wfare-true", "wfare-true-path", "fare-path", "mcts-path")
"""W-FARE given the true weights, and searches returning their path."""
LEARNED = ("fare", "efare", "rl", "pear-nl", "pear-l")
"""Methods that need a policy trained for the classifier at hand."""
DRAWN = ("graphs", "actions")
"""Experiments that show a problem, and no users."""
SET_SIZE = 300
"""Users of each set of the data sets of ours."""
AT_LEAST_ONE = ("users", "shallow_users", "runs", "corruption_runs", "iterations", "chunk")
EXPLAINED = ("xpear-nl", "xpear-l", "xpear-exact-l")
SLOW = ("cscf", "pear-exact-nl", "pear-exact-l", "xpear-exact-l", "pear-slices-l")
"""Methods that take longest for a user: they come last."""


@dataclass(frozen=True)
class Profile:
    """What a run takes: the first ``users`` of each set of 300, run seeds 0 to ``runs`` - 1.

    ``corruption_runs`` is for the corruption table alone, whose graphs differ by run.
    ``iterations``, ``trained_people`` and ``judges`` (held out) are of policy training,
    ``taught`` the people an automaton learns from,
    ``chunk`` the users of one task. ``shallow_users`` is for the table of shallow classifiers
    alone (None: ``users``), ``not_shallow`` are methods left out there, since each of these
    classifiers needs policies of its own. ``few`` is the users of each set where seconds are spent
    on a side question: slice sampling, and PEAR (exact) with choice sets of four or with edges
    removed.
    """

    name: str
    datasets: tuple[str, ...]
    users: int
    runs: int
    corruption_runs: int
    questions: int = 10
    user_sets: tuple[str, ...] = ("all", "hard")
    ks: tuple[int, ...] = (2, 4)
    corruptions: tuple[float, ...] = (0.15, 0.25, 0.5, 1.0)
    classifiers: tuple[str, ...] = ("logistic", "tree")
    methods: tuple[str, ...] = (*COMPETITORS, *PEAR, *EXACT, *PATHS, *EXPLAINED)
    iterations: int = 240
    batch_people: int = 128
    trained_people: int = 3000
    judges: int = 200
    taught: int = 300
    population: int = 50
    generations: int = 25
    chunk: int = 60
    seed: int = 0
    not_shallow: tuple[str, ...] = ()
    shallow_users: int | None = None
    few: int = SET_SIZE

    def __post_init__(self) -> None:
        for name in AT_LEAST_ONE:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidSetting(
                    f"'{name}' must be at least 1 (got {value}); leave it out for the profile's"
                )

    def people(self, classifier: str = "network") -> int:
        """How many users of each set are taken for a classifier."""
        shallow = classifier in self.classifiers and self.shallow_users is not None
        return min(self.users, self.shallow_users or 0) if shallow else self.users

    def words(self, experiments: Collection[str] = (), fewer: bool = False) -> str:
        """Users and seeds of experiments (all of them, unless named) in one sentence.

        ``fewer``: some set has fewer users than this.

        >>> PROFILES["smoke"].words()  # doctest: +ELLIPSIS
        'profile smoke: the first 2 users of each set, run seed 0 to 1 (corruption: 0), ...'
        """
        run = set(experiments) - set(DRAWN)
        if experiments and not run:
            return f"profile {self.name}: no users and no runs, the problems alone"
        least = min(self.people(name) for name in self.classifiers)
        users, shallow = self.users, ""
        if run == {"classifiers"}:
            users = least
        elif least < users and (not run or "classifiers" in run):
            shallow = f" ({least} with shallow classifiers)"
        seeds, corrupted = self._seeds(self.runs), self._seeds(self.corruption_runs)
        if run == {"corruption"}:
            seeds = corrupted
        elif (not run or "corruption" in run) and seeds != corrupted:
            seeds += f" (corruption: {corrupted})"
        where = "of each set, or all where it has fewer" if fewer else "of each set"
        return (
            f"profile {self.name}: the first {users} users {where}{shallow}, run seed {seeds}, "
            f"{self.questions} questions"
        )

    def _seeds(self, runs: int) -> str:
        return f"{self.seed} to {self.seed + runs - 1}" if runs > 1 else str(self.seed)

    def only(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Those of some methods that this profile runs, in their order."""
        return tuple(name for name in names if name in self.methods)

    def own(self) -> tuple[str, ...]:
        """Methods that joined by their import path."""
        ours = {*COMPETITORS, *PEAR, *OTHERS, *EXACT, *PATHS, *EXPLAINED}
        return tuple(name for name in self.methods if name not in ours)

    def changed(self, **changes: Any) -> Profile:
        """The profile with some of its settings changed, and named so."""
        known = {field.name for field in fields(self)}
        unknown = [name for name in changes if name not in known]
        if unknown:
            raise InvalidSetting(f"a profile has no setting '{unknown[0]}'")
        different = {k: v for k, v in changes.items() if v is not None and v != getattr(self, k)}
        if not different:
            return self
        name = self.name if self.name.endswith("(changed)") else f"{self.name} (changed)"
        return replace(self, name=name, **different)


PROFILES = {
    "smoke": Profile(
        "smoke",
        ("loan_book",),
        users=2,
        runs=2,
        corruption_runs=1,
        questions=2,
        user_sets=("all",),
        corruptions=(1.0,),
        iterations=2,
        batch_people=16,
        trained_people=60,
        judges=12,
        taught=24,
        population=20,
        generations=10,
        chunk=2,
        not_shallow=LEARNED,
    ),
    "reduced": Profile(
        "reduced",
        ("adult", "givemecredit"),
        users=60,
        runs=1,
        corruption_runs=1,
    ),
    "full": Profile(
        "full",
        ("adult", "givemecredit"),
        users=300,
        runs=1,
        corruption_runs=1,
        chunk=30,
        few=60,
        methods=(*COMPETITORS, *PEAR, *OTHERS, *EXACT, *PATHS, *EXPLAINED),
    ),
}


def find_profile(name: str) -> Profile:
    """A profile by its name."""
    if name not in PROFILES:
        raise InvalidSetting(f"'profile' must be one of {', '.join(PROFILES)} (got {name!r})")
    return PROFILES[name]
