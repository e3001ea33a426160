"""The paper's classifiers on the loan book: how good, how stored, and like scikit-learn's."""

import numpy as np
import pytest

from pear.datasets import classifier_report, load_dataset, trained_classifier
from pear.datasets import classifiers as module
from pear.datasets.classifiers import f1, mean_f1
from pear.datasets.sources import cache_folder
from pear.errors import InvalidSetting, MissingExtra


@pytest.fixture(scope="module")
def book():
    return load_dataset("loan_book")


@pytest.mark.parametrize(("kind", "least"), [("logistic", 0.86), ("tree", 0.76), ("network", 0.78)])
@pytest.mark.slow
def test_trained_stored_and_read_again(kind, least, book, monkeypatch):
    if kind == "network":
        pytest.importorskip("torch", reason="needs the extra 'learned'")
    model = trained_classifier("loan_book", kind, data=book)
    report = classifier_report("loan_book", kind, data=book)
    assert report.accuracy > least
    assert report.mean_f1 > least
    assert 0.35 < report.refused < 0.55
    [stored] = (cache_folder() / "classifiers").iterdir()
    assert stored.name.startswith(f"loan_book-{kind}-")
    monkeypatch.setattr(module, "TRAINERS", {})
    again = trained_classifier("loan_book", kind, data=book)
    people = book.states[book.test]
    assert np.array_equal(again.score(people), model.score(people))
    assert again.name == f"loan_book {kind}"


def test_the_report_is_about_the_test_part(book):
    report = classifier_report("loan_book", "tree", data=book)
    model = trained_classifier("loan_book", "tree", data=book)
    decided, true = model.favourable(book.states[book.test]), book.favourable[book.test]
    assert report.accuracy == (decided == true).mean()
    assert report.refused == (~decided).mean()
    assert report.f1 == pytest.approx(f1(decided, true))


def test_a_damaged_file_is_trained_again(book):
    first = trained_classifier("loan_book", "tree", data=book)
    [stored] = (cache_folder() / "classifiers").iterdir()
    stored.write_bytes(b"not an archive")
    again = trained_classifier("loan_book", "tree", data=book)
    assert again.fingerprint == first.fingerprint


def test_another_seed_is_another_file(book):
    trained_classifier("loan_book", "tree", data=book)
    trained_classifier("loan_book", "tree", seed=1, data=book)
    assert len(list((cache_folder() / "classifiers").iterdir())) == 2


def test_a_kind_we_do_not_train_is_refused(book):
    with pytest.raises(InvalidSetting, match=r"network, logistic, tree \(got 'forest'\)"):
        trained_classifier("loan_book", "forest", data=book)


def test_the_network_asks_for_its_extra(book, monkeypatch):
    def absent(name):
        raise MissingExtra("'torch' is not installed; it comes with the extra 'learned'")

    monkeypatch.setattr(module, "require", absent)
    with pytest.raises(MissingExtra, match="learned"):
        trained_classifier("loan_book", "network", data=book)


def test_f1_by_hand():
    # One right, one falsely favourable, one falsely refused: 2 / (2 + 2).
    decided, true = np.array([1, 1, 0, 0], bool), np.array([1, 0, 1, 0], bool)
    assert f1(decided, true) == 0.5
    assert mean_f1(decided, true) == 0.5
    assert f1(np.zeros(4, bool), true) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "accuracy", "refused"),
    [
        ("adult", "logistic", 0.79, (0.55, 0.75)),
        ("givemecredit", "tree", 0.75, (0.15, 0.35)),
    ],
)
def test_on_the_real_tables(name, kind, accuracy, refused, real_data):
    report = classifier_report(name, kind)
    assert report.accuracy > accuracy
    assert refused[0] < report.refused < refused[1]
