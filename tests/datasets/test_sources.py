"""Finding the public tables: the named folder, then the cache, then OpenML."""

import gzip

import pandas as pd
import pytest

from pear.datasets import sources
from pear.datasets.sources import cache_folder, clean_table, raw_table
from pear.errors import DataUnavailable, InvalidData, InvalidSetting

ADULT = pd.DataFrame(
    {
        "age": [39, 50, 28],
        "workclass": ["State-gov", "?", "Private"],
        "fnlwgt": [1, 2, 3],
        "education": ["Bachelors", "HS-grad", "Masters"],
        "education-num": [13, 9, 14],
        "marital-status": ["Never-married", "Divorced", "Divorced"],
        "occupation": ["Sales", "Sales", "Tech-support"],
        "relationship": ["Husband", "Wife", "Unmarried"],
        "race": ["White", "Black", "Other"],
        "sex": ["Male", "Female", "Female"],
        "capital-gain": [2174, 0, 0],
        "capital-loss": [0, 0, 0],
        "hours-per-week": [40, 13, 50],
        "native-country": ["Cuba", "Cuba", "Italy"],
        "class": ["<=50K", "<=50K", ">50K"],
    }
)


@pytest.fixture(autouse=True)
def no_named_folder(monkeypatch):
    monkeypatch.delenv("PEAR_DATA", raising=False)


def forbidden(number):
    raise AssertionError("OpenML was asked")


def test_openml_is_asked_once_and_its_columns_get_our_names():
    asked = []

    def fetch(number):
        asked.append(number)
        return ADULT

    first = raw_table("adult", fetch)
    assert asked == [1590]
    assert list(first.columns) == list(sources.SOURCES["adult"].columns)
    again = raw_table("adult", forbidden)
    assert again.to_dict("list") == first.to_dict("list")
    assert [path.name for path in cache_folder().iterdir()] == ["adult.csv.gz"]


def test_the_named_folder_comes_before_the_cache(tmp_path, monkeypatch):
    raw_table("adult", lambda number: ADULT)
    ADULT.head(1).to_csv(tmp_path / "adult.csv.gz", index=False)
    monkeypatch.setenv("PEAR_DATA", str(tmp_path))
    assert len(raw_table("adult", forbidden)) == 1


def test_a_named_folder_without_the_file_falls_back(tmp_path, monkeypatch):
    monkeypatch.setenv("PEAR_DATA", str(tmp_path))
    assert len(raw_table("adult", lambda number: ADULT)) == 3


def test_no_network_says_what_to_do():
    def fetch(number):
        raise OSError("network is unreachable")

    with pytest.raises(DataUnavailable, match=r"unreachable.*put adult.csv.gz .*set PEAR_DATA"):
        raw_table("adult", fetch)
    assert not (cache_folder() / "adult.csv.gz").exists()


def test_openml_is_reached_through_scikit_learn(monkeypatch):
    import sklearn.datasets

    class Bunch:
        frame = ADULT

    asked = {}
    monkeypatch.setattr(
        sklearn.datasets, "fetch_openml", lambda **settings: asked.update(settings) or Bunch
    )
    assert len(raw_table("adult")) == 3
    assert asked["data_id"] == 1590


def test_a_table_without_the_columns_is_refused():
    with pytest.raises(InvalidData, match="lacks the columns occupation; is it the right file"):
        raw_table("adult", lambda number: ADULT.drop(columns="occupation"))


def test_a_damaged_file_is_refused(tmp_path, monkeypatch):
    (tmp_path / "adult.csv.gz").write_bytes(gzip.compress(b"x" * 1_000)[:-20])
    monkeypatch.setenv("PEAR_DATA", str(tmp_path))
    with pytest.raises(InvalidData, match="cannot be read as a table"):
        raw_table("adult")


def test_an_unknown_data_set_is_refused():
    with pytest.raises(
        InvalidSetting, match=r"must be one of adult, givemecredit \(got 'compas'\)"
    ):
        clean_table("compas")


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/pear"),
        ("linux", {"HOME": "/home/eve"}, "/home/eve/.cache/pear"),
        ("darwin", {"HOME": "/home/eve"}, "/home/eve/Library/Caches/pear"),
        ("win32", {"LOCALAPPDATA": "/apps"}, "/apps/pear/cache"),
    ],
)
def test_the_cache_folder_of_each_system(platform, variables, expected, monkeypatch):
    for name in ("PEAR_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sources.sys, "platform", platform)
    assert cache_folder().as_posix() == expected
