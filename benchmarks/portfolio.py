"""How fast, and in how much memory, is a whole portfolio planned? Adult, the published network.

Beside it, in the same run and where it is installed, a peer: ``dice-ml`` with random sampling, on
the same people and the same classifier, one process each. Times of a whole run include reading,
writing and the start of the workers. Needs PEAR_BENCH and PEAR_DATA.

Names: ``plans_per_second`` (two workers, whole run), ``plans_per_second_1`` (one worker),
``scaling_2`` (two workers against one), ``peak_mb_10k`` and ``peak_mb_100k`` (resident memory
of all processes together), ``peak_ratio``, ``peer.time_ratio`` (seconds of the peer per person
over ours, one process each). On a machine that does other work at the same time, the figures
by processor seconds say more: ``plans_per_processor_second``, ``processor_2_over_1`` (what the
second worker costs on top), ``peer.processor_ratio``; ``load`` is the machine's load at the end.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partialmethod
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from pear.datasets.published import (
    published_classifier,
    published_prior_means,
    published_problem,
)
from pear.decision import BlackBox
from pear.portfolio import plan_portfolio, weights_table
from pear.problem import Problem

PAGE = os.sysconf("SC_PAGE_SIZE")
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def refused_people() -> pd.DataFrame:
    """Rows of the Adult table that fit the published problem and that the network refuses."""
    problem = published_problem("adult")
    table = pd.read_csv(Path(os.environ["PEAR_DATA"]) / "adult.csv.gz")
    names = list(problem.space.names)
    fits = np.ones(len(table), bool)
    for feature in problem.space.features:
        if feature.is_categorical:
            fits &= table[feature.name].isin(feature.categories).to_numpy()
    table = table.loc[fits, names].reset_index(drop=True)
    refused = ~published_classifier(problem).favourable(problem.space.encode(table))
    return table[refused].sample(frac=1.0, random_state=0).reset_index(drop=True)


def write_tables(people: pd.DataFrame, n: int, folder: Path) -> None:
    """n people, the same ones again where there are fewer, each with weights of the prior."""
    problem = published_problem("adult")
    rng = np.random.default_rng(0)
    means = published_prior_means("adult")
    table = people.iloc[np.arange(n) % len(people)]
    table.to_parquet(folder / f"people-{n}.parquet", index=False)
    weights = means[rng.integers(0, len(means), n)] + rng.standard_normal((n, means.shape[1]))
    columns = list(problem.weight_names)
    pd.DataFrame(weights, columns=columns).to_parquet(folder / f"weights-{n}.parquet", index=False)


def classifier(problem: Problem) -> BlackBox:
    """The published network, asked in blocks whose activations stay in the cache: for a model
    that costs nothing to call, that is faster than one call for tens of thousands of rows."""
    black_box = published_classifier(problem)
    black_box.max_batch = 2_048
    return black_box


def plan_here(folder: Path, n: int, workers: int) -> None:
    """One whole run, in a process of its own; prints what it did as JSON."""
    problem = published_problem("adult")
    began = time.perf_counter()
    summary = plan_portfolio(
        problem,
        classifier(problem),
        folder / f"people-{n}.parquet",
        folder / f"plans-{n}-{workers}.parquet",
        weights_table(folder / f"weights-{n}.parquet", problem),
        workers=workers,
        restart=True,
    )
    seconds = time.perf_counter() - began
    verdicts = pd.read_parquet(summary.output, columns=["verdict"])["verdict"]
    certified = int(verdicts.isin(["optimal", "infeasible"]).sum())
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processor = sum(own.ru_utime + own.ru_stime for own in used)
    print(json.dumps({"seconds": seconds, "processor": processor, "certified": certified}))


def plan_apart(folder: Path, n: int, workers: int) -> tuple[dict[str, float], float]:
    """A run in a process of its own, and the most memory it and its workers held, in MB."""
    command = [sys.executable, __file__, "--run", str(folder), str(n), str(workers)]
    peak = 0.0
    environment = {**os.environ, **THREADS}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as running:
        while running.poll() is None:
            peak = max(peak, memory_of_tree(running.pid))
            time.sleep(0.1)
        assert running.stdout is not None
        output = running.stdout.read()
    if running.returncode:
        raise SystemExit(f"a run of {n} people on {workers} workers failed")
    return json.loads(output.strip().splitlines()[-1]), peak


def memory_of_tree(root: int) -> float:
    """Resident memory of a process and all below it, in MB."""
    parents, pages = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            pages[int(entry.name)] = int((entry / "statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
        parents[int(entry.name)] = int(stat[1])
    family = {root}
    while True:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        if not more:
            return sum(pages.get(pid, 0) for pid in family) * PAGE / 2**20
        family |= more


class PeerModel:
    """The same classifier as the peer expects one: tables in, probabilities out."""

    def __init__(self) -> None:
        self.problem = published_problem("adult")
        self.black_box = classifier(self.problem)

    def predict_proba(self, table: pd.DataFrame) -> np.ndarray:
        names = list(self.problem.space.names)
        numbers = [f.name for f in self.problem.space.features if not f.is_categorical]
        scores = self.black_box.score(
            self.problem.space.encode(table[names].astype(dict.fromkeys(numbers, float)))
        )
        return np.column_stack([1 - scores, scores])

    def predict(self, table: pd.DataFrame) -> np.ndarray:
        return (self.predict_proba(table)[:, 1] > 0.5).astype(int)


def peer_seconds(people: pd.DataFrame, n: int) -> tuple[float, float, float]:
    """Seconds and processor seconds per person of dice-ml's random method, and the share of
    people it found something for."""
    import dice_ml
    import tqdm

    tqdm.tqdm.__init__ = partialmethod(tqdm.tqdm.__init__, disable=True)

    model = PeerModel()
    space = model.problem.space
    numbers = [feature.name for feature in space.features if not feature.is_categorical]
    changeable = sorted({space.names[c] for c in model.problem.actions.feature_of})
    table = people.iloc[: max(2_000, n)].copy()
    table["outcome"] = model.predict(table)
    table.loc[table.index[0], "outcome"] = 1  # It wants to have seen both classes.
    data = dice_ml.Data(dataframe=table, continuous_features=numbers, outcome_name="outcome")
    explainer = dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn"), method="random")
    found = 0
    began, worked = time.perf_counter(), time.process_time()
    for i in range(n):
        try:
            explainer.generate_counterfactuals(
                people.iloc[[i]],
                total_CFs=1,
                desired_class=1,
                features_to_vary=changeable,
                random_seed=i,
                verbose=False,
            )
            found += 1
        except Exception as error:
            if "No counterfactuals found" not in str(error):
                raise
    seconds, processor = time.perf_counter() - began, time.process_time() - worked
    return seconds / n, processor / n, found / n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="smaller runs; memory at 1k and 5k")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        plan_here(Path(options.run[0]), int(options.run[1]), int(options.run[2]))
        return
    warnings.filterwarnings("ignore")
    small, large, asked = (1_000, 5_000, 10) if options.quick else (10_000, 100_000, 60)
    people = refused_people()
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(people, small, folder)
        alone, _ = plan_apart(folder, small, 1)
        pair, peak_small = plan_apart(folder, small, 2)
        same = (folder / f"plans-{small}-1.parquet").read_bytes()
        assert same == (folder / f"plans-{small}-2.parquet").read_bytes(), "plans differ"
        if importlib.util.find_spec("dice_ml") is not None:
            with threadpool_limits(1):
                each, worked, share = peer_seconds(people, asked)
            figures["peer.seconds_per_person"] = each
            figures["peer.share_found"] = share
            figures["peer.time_ratio"] = each / (alone["seconds"] / alone["certified"])
            figures["peer.processor_ratio"] = worked / (alone["processor"] / alone["certified"])
        write_tables(people, large, folder)
        _, peak_large = plan_apart(folder, large, 2)
    figures["plans_per_second"] = pair["certified"] / pair["seconds"]
    figures["plans_per_second_1"] = alone["certified"] / alone["seconds"]
    figures["scaling_2"] = alone["seconds"] / pair["seconds"]
    figures[f"peak_mb_{small // 1000}k"] = peak_small
    figures[f"peak_mb_{large // 1000}k"] = peak_large
    figures["peak_ratio"] = peak_large / peak_small
    figures["plans_per_processor_second"] = pair["certified"] / pair["processor"]
    figures["processor_2_over_1"] = pair["processor"] / alone["processor"]
    figures["load"] = os.getloadavg()[0]
    for key, value in figures.items():
        print(f"{key:26} {value:10.3f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
