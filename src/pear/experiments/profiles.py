"""How much of the paper's protocol does a run take?"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from pear.errors import InvalidSetting

COMPETITORS = ("fare", "cscf", "efare", "rl", "mcts", "face")
PEAR = ("pear-nl", "pear-l")
SLICES = ("pear-slices-nl", "pear-slices-l")
EXACT = ("exact-mean", "pear-exact-nl", "pear-exact-l", "exact-true", "exact-repeats")
LEARNED = ("fare", "efare", "rl", "pear-nl", "pear-l")
"""Methods that need a policy trained for the classifier at hand."""
EXPLAINED = ("xpear-nl", "xpear-l", "xpear-exact-nl", "xpear-exact-l")


@dataclass(frozen=True)
class Profile:
    """What a run takes: the first ``users`` of each set of 300, run seeds 0 to ``runs`` - 1.

    ``corruption_runs`` is for the corruption table alone, whose graphs differ by run.
    ``iterations``, ``trained_people`` and ``judges`` (held out) are of policy training,
    ``taught`` the people an automaton learns from,
    ``chunk`` the users of one task. ``shallow_users`` is for the table of shallow classifiers
    alone (None: ``users``), ``not_shallow`` are methods left out there, since each of these
    classifiers needs policies of its own.
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
    methods: tuple[str, ...] = (*COMPETITORS, *PEAR, *EXACT, *EXPLAINED)
    iterations: int = 240
    batch_people: int = 128
    trained_people: int = 3000
    judges: int = 200
    taught: int = 300
    population: int = 50
    generations: int = 25
    chunk: int = 20
    seed: int = 0
    not_shallow: tuple[str, ...] = ()
    shallow_users: int | None = None

    def people(self, classifier: str = "network") -> int:
        """How many users of each set are taken for a classifier."""
        shallow = classifier in self.classifiers and self.shallow_users is not None
        return min(self.users, self.shallow_users or 0) if shallow else self.users

    def words(self) -> str:
        """Users and seeds in one sentence.

        >>> PROFILES["smoke"].words()  # doctest: +ELLIPSIS
        'profile smoke: the first 2 users of each set, run seeds 0 to 1 (corruption: 0 to 0), ...'
        """
        fewer = {self.people(name) for name in self.classifiers} - {self.users}
        shallow = f" ({min(fewer)} with shallow classifiers)" if fewer else ""
        return (
            f"profile {self.name}: the first {self.users} users of each set{shallow}, run seeds "
            f"{self.seed} to {self.seed + self.runs - 1} (corruption: "
            f"{self.seed} to {self.seed + self.corruption_runs - 1}), "
            f"{self.questions} questions"
        )

    def only(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Those of some methods that this profile runs, in their order."""
        return tuple(name for name in names if name in self.methods)

    def own(self) -> tuple[str, ...]:
        """Methods that joined by their import path, and those for trials."""
        ours = {*COMPETITORS, *PEAR, *SLICES, *EXACT, *EXPLAINED}
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
        runs=2,
        corruption_runs=2,
        chunk=10,
        shallow_users=30,
    ),
    "full": Profile(
        "full",
        ("adult", "givemecredit"),
        users=300,
        runs=10,
        corruption_runs=10,
        methods=(*COMPETITORS, *PEAR, *SLICES, *EXACT, *EXPLAINED),
    ),
}


def find_profile(name: str) -> Profile:
    """A profile by its name."""
    if name not in PROFILES:
        raise InvalidSetting(f"'profile' must be one of {', '.join(PROFILES)} (got {name!r})")
    return PROFILES[name]
