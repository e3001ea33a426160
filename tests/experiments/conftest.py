"""One smoke run for all tests of the experiments, with a cache of its own."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pear.experiments.profiles import PROFILES
from pear.experiments.report import EXPERIMENTS, run_suite

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache in which policies of the tests are kept; nobody's own is touched."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PEAR_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def smoke(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a smoke run of every experiment, on one process."""
    for module in ("torch", "pymoo", "matplotlib"):
        pytest.importorskip(module)
    folder = tmp_path_factory.mktemp("smoke")
    run_suite(tuple(EXPERIMENTS), PROFILES["smoke"], folder, workers=1)
    return folder
