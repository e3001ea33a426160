"""A cache folder of its own for every test run, so that nobody's files decide a test."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PEAR_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def real_data():
    folder = os.environ.get("PEAR_DATA")
    if not folder or not (Path(folder) / "adult.csv.gz").is_file():
        pytest.skip("needs the public tables (set PEAR_DATA)")


@pytest.fixture
def bench():
    if not os.environ.get("PEAR_BENCH"):
        pytest.skip("needs the published reference files (set PEAR_BENCH)")
