"""Tables as they come, and the people in them: whole, cut off, empty, in any encoding."""

import gzip
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pear.datasets import loan_book_problem, loan_book_table
from pear.errors import InvalidData
from pear.problem import Feature, FeatureSpace
from pear.tables.people import fitting_states, people_of, read_people
from pear.tables.reading import MISSING_TEXTS, open_table, read_table, require_columns, typed
from tests.portfolio.small_problem import SPACE, people, write
from tests.problem.examples import mixed_space, random_records


def rows_of(source, size):
    return [int(number) for chunk in source.chunks(size) for number in chunk.frame.index]


@pytest.mark.parametrize("size", [7, 1_500, 5_000])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_every_row_is_in_one_chunk_whatever_its_size(tmp_path, size, ending):
    source = open_table(write(people(2_400), tmp_path / f"people.{ending}"))
    assert source.rows == 2_400
    sizes = [chunk.size for chunk in source.chunks(size)]
    assert sum(sizes) == 2_400
    assert set(sizes[:-1]) <= {size}
    frames = [typed(chunk.frame, SPACE) for chunk in source.chunks(size)]
    found = pd.concat(frames)
    assert found.index.tolist() == list(range(2_400))
    assert np.array_equal(SPACE.encode(found), SPACE.encode(people(2_400)))


def test_chunks_do_not_follow_files_or_row_groups(tmp_path):
    folder = tmp_path / "people"
    folder.mkdir()
    people(50).iloc[:31].to_parquet(folder / "a.parquet", row_group_size=4)
    write(people(50).iloc[31:], folder / "b.csv")
    (folder / "_SUCCESS").touch()
    (folder / "notes.txt").write_text("not a table")
    source = open_table(folder)
    assert [chunk.size for chunk in source.chunks(20)] == [20, 20, 10]
    assert rows_of(source, 20) == list(range(50))


def test_gzipped_csv_and_byte_order_marks(tmp_path):
    with gzip.open(tmp_path / "people.csv.gz", "wt", encoding="utf-8-sig") as stream:
        people(5).to_csv(stream, index=False)
    assert open_table(tmp_path / "people.csv.gz").columns[0] == "id"
    assert rows_of(open_table(tmp_path / "people.csv.gz"), 2) == [0, 1, 2, 3, 4]


def test_a_cell_with_a_line_break_is_one_cell(tmp_path):
    frame = people(3).assign(note=["one\ntwo", 'a "quote"', ""])
    source = open_table(write(frame, tmp_path / "people.csv"))
    [chunk] = source.chunks(10)
    assert chunk.frame["note"].tolist() == ["one\ntwo", 'a "quote"', ""]


def test_a_truncated_parquet_is_refused_by_name(tmp_path):
    path = write(people(500), tmp_path / "people.parquet")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InvalidData, match=r"people\.parquet' cannot be read .* cut off"):
        open_table(path)


def test_a_truncated_gzip_is_refused_by_name(tmp_path):
    path = tmp_path / "people.csv.gz"
    path.write_bytes(gzip.compress(people(500).to_csv(index=False).encode())[:-100])
    with pytest.raises(InvalidData, match="cut off"):
        open_table(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("people.csv", b"", "is empty"),
        ("people.csv", b"a,b,a\n1,2,3\n", "'a' twice"),
        ("people.csv", b"a,b\n\x00\x01,1\n", "it is not text"),
        ("people.xlsx", b"PK", r"is a spreadsheet.* save the sheet .* as CSV \(UTF-8\)"),
        ("people.json", b"[]", "must be a .csv, .tsv or .parquet file"),
        ("people.parquet", b"not parquet at all", "cannot be read"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidData, match=message):
        open_table(tmp_path / name)


def test_absent_files_columns_and_empty_folders_are_refused(tmp_path):
    with pytest.raises(InvalidData, match="no file or folder"):
        open_table(tmp_path / "nowhere.csv")
    with pytest.raises(InvalidData, match="holds no"):
        open_table(tmp_path)
    source = open_table(write(people(3).drop(columns=["age", "job"]), tmp_path / "few.csv"))
    with pytest.raises(InvalidData, match="lacks the columns job, age"):
        require_columns(source, SPACE)
    write(people(3), tmp_path / "more.csv")
    with pytest.raises(InvalidData, match="same columns"):
        open_table(tmp_path)


@given(st.text(max_size=8))
def test_a_csv_number_is_read_or_left_as_it_stands(text):
    [value] = typed(pd.DataFrame({"age": [text]}, dtype=object), SPACE)["age"].tolist()
    if isinstance(value, (int, float)) and value is not None:
        assert float(text.strip()) == value or np.isnan(value)
    else:
        assert value == text.strip() or (value is None and text.strip() in MISSING_TEXTS)


def test_semicolons_and_tabs_part_columns_too(tmp_path):
    frame = people(5).assign(income=[0.5, 1.25, 30, 40, 50])
    expected = SPACE.encode(frame)
    for name, settings in (("a", {"sep": ";", "decimal": ","}), ("b", {"sep": "\t"})):
        frame.to_csv(tmp_path / f"{name}.csv", index=False, **settings)
        [chunk] = open_table(tmp_path / f"{name}.csv").chunks(10)
        assert np.array_equal(SPACE.encode(typed(chunk.frame, SPACE)), expected)


def test_a_quote_left_open_is_told_with_its_lines(tmp_path):
    lines = write(people(9), tmp_path / "people.csv").read_text().splitlines()
    lines[4] = '"' + lines[4]
    lines[6] += '"'
    (tmp_path / "people.csv").write_text("\n".join(lines))
    [chunk] = open_table(tmp_path / "people.csv").chunks(10)
    assert chunk.size == 7
    assert chunk.broken.keys() == {3}
    assert "lines 5 to 7 were read as one" in chunk.broken[3].reason


@pytest.mark.parametrize("column", ["note", "sex"])
def test_rows_inside_a_cell_are_never_passed_over(tmp_path, column):
    frame = people(9).assign(note="-")
    lines = write(frame, tmp_path / "people.csv").read_text().splitlines()
    place = frame.columns.tolist().index(column)
    for number in (4, 6):
        cells = lines[number].split(",")
        cells[place] = '"' + cells[place]
        lines[number] = ",".join(cells)
    (tmp_path / "people.csv").write_text("\n".join(lines))
    [chunk] = open_table(tmp_path / "people.csv").chunks(10)
    assert chunk.size == 7
    assert chunk.broken.keys() == {3}
    assert pickle.loads(pickle.dumps(chunk.broken[3])).lines == 3
    assert "look like further rows; lines 5 to 7 were read as one" in chunk.broken[3].reason


def test_rows_know_their_file(tmp_path):
    for i in range(3):
        write(people(5), tmp_path / f"{i}.csv")
    chunks = list(open_table(tmp_path).chunks(4))
    places = [chunk.place(row) for chunk in chunks for row in chunk.frame.index]
    assert places == [(f"{row // 5}.csv", row % 5) for row in range(15)]


@pytest.mark.parametrize("name", ["more.xlsx", "year=2026"])
def test_people_in_a_folder_are_never_passed_over(tmp_path, name):
    write(people(5), tmp_path / "people.csv")
    (tmp_path / name).mkdir() if "=" in name else (tmp_path / name).touch()
    with pytest.raises(InvalidData, match=f"'{name}', which is not read"):
        open_table(tmp_path)


def test_whole_numbers_stay_whole_beside_missing_ones(tmp_path):
    frame = people(4).assign(id=pd.array([7, None, 9, 10], dtype="Int64"))
    [chunk] = open_table(write(frame, tmp_path / "people.parquet")).chunks(10)
    assert people_of(chunk, SPACE, "id").ids == ["7", "", "9", "10"]


CSV = """age, income ,school,job,owner,debt
30, 100.1,none,clerk,yes,
40,200.25,degree,manager,no,3
"""


def test_text_is_read_as_the_kinds_of_the_features(tmp_path):
    (tmp_path / "people.csv").write_text(CSV)
    found = read_people(tmp_path / "people.csv", mixed_space())
    expected = [[30.0, 100.1, np.nan, 0.0, 0.0, 1.0], [40.0, 200.25, 3.0, 2.0, 1.0, 0.0]]
    assert np.array_equal(found.states, expected, equal_nan=True)
    assert (found.rows.tolist(), found.ids, found.bad) == ([0, 1], ["0", "1"], [])


def test_text_and_parquet_hold_the_same_people(tmp_path):
    space, table = loan_book_problem().space, loan_book_table(200, 3)
    table.to_csv(tmp_path / "people.csv.gz", index=False)
    table.to_csv(tmp_path / "people.tsv", index=False, sep="\t")
    table.to_csv(tmp_path / "people.txt", index=False, sep=";", decimal=",", encoding="utf-16")
    table.to_parquet(tmp_path / "people.parquet")
    for name in ("people.csv.gz", "people.tsv", "people.txt", "people.parquet"):
        assert np.array_equal(read_people(tmp_path / name, space).states, space.encode(table))


def test_categories_that_look_like_numbers_or_missing_values_stay_texts(tmp_path):
    space = FeatureSpace(
        (
            Feature("grade", "categorical", categories=("1", "2", "None"), missing_counts_as="2"),
            Feature("n", missing_counts_as=7.0),
        )
    )
    (tmp_path / "t.csv").write_text("grade,n\n1,NA\nNone,0.5\n?,\n")
    gone = np.nan
    found = read_people(tmp_path / "t.csv", space).states
    assert np.array_equal(found, [[0, gone], [2, 0.5], [gone, gone]], equal_nan=True)
    for grades in ([1, None], [1.0, None], ["1", "NA"]):
        frame = pd.DataFrame({"grade": grades, "n": [1.0, None]})
        frame.to_parquet(tmp_path / "t.parquet")
        found = read_people(tmp_path / "t.parquet", space).states
        assert np.array_equal(found, [[0, 1], [gone, gone]], equal_nan=True)


def test_signs_beyond_ascii_are_the_same_in_every_encoding(tmp_path):
    text = "nom;âge;solde\nRenée;1;2,5 \nZoë – “Ó”;2;-3\n"
    expected = [
        {"nom": "Renée", "âge": 1.0, "solde": 2.5},
        {"nom": "Zoë – “Ó”", "âge": 2.0, "solde": -3.0},
    ]
    for encoding in ("utf-8", "utf-8-sig", "cp1252", "utf-16"):
        (tmp_path / "t.csv").write_bytes(text.encode(encoding))
        assert read_table(tmp_path / "t.csv")[0].to_dict("records") == expected
    (tmp_path / "t.csv").write_bytes("nom,n\né,1\nè\xff,2\n".encode().replace(b"\xbf", b""))
    assert read_table(tmp_path / "t.csv")[0]["nom"].tolist()[0] == "é"


def test_kinds_of_columns_are_guessed_where_no_problem_states_them(tmp_path):
    (tmp_path / "t.tsv").write_text("a\tb\tc\n1\tx, y\tNA\n?\tNA\t1_000\n")
    frame, broken = read_table(tmp_path / "t.tsv")
    assert frame["a"].tolist()[0] == 1.0
    assert np.isnan(frame["a"][1])
    assert frame["b"].tolist() == ["x, y", None]
    assert frame["c"].tolist() == [None, "1_000"]
    assert not broken
    # Among texts a question mark is what pandas, and a model trained through it, takes it for.
    (tmp_path / "t.csv").write_text("a,b\nx,?\n?,2\n")
    frame, _ = read_table(tmp_path / "t.csv")
    assert frame["a"].tolist() == ["x", "?"]
    assert frame["b"].tolist()[1] == 2.0


def test_rows_of_another_width_and_empty_lines_are_told_apart(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2,3\n\n5,6\n7\n   \n,\n8,9\n")
    frame, broken = read_table(tmp_path / "t.csv")
    assert frame.index.tolist() == [1, 3]
    assert frame["a"].tolist() == [5.0, 8.0]
    assert {row: why.reason for row, why in broken.items()} == {
        0: "line 2 has 3 cells and the header 2",
        2: "line 5 has 1 cells and the header 2",
    }
    assert open_table(tmp_path / "t.csv").rows == 4


def test_long_text_is_read_in_blocks_and_keeps_its_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr("pear.tables.reading.BLOCK", 64)
    lines = [f"{i},{i * 2}" if i % 7 else f"{i}" for i in range(500)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *lines]))
    chunks = list(open_table(tmp_path / "t.csv").chunks(11))
    broken = {row: why for chunk in chunks for row, why in chunk.broken.items()}
    assert sorted(broken) == list(range(0, 500, 7))
    assert broken[490].reason == "line 492 has 1 cells and the header 2"
    rows = pd.concat([chunk.frame for chunk in chunks])
    assert rows["a"].astype(int).tolist() == rows.index.tolist()
    assert len(rows) + len(broken) == 500


def test_a_quote_that_is_never_closed_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr("pear.tables.reading.BLOCK", 64)
    (tmp_path / "t.csv").write_text('a,b\n1,2\n"3,4\n' + "5,6\n" * 500)
    with pytest.raises(InvalidData, match=r"t\.csv' cannot be read .*left open in it: close it"):
        open_table(tmp_path / "t.csv")


def test_a_table_without_people_is_refused(tmp_path):
    (tmp_path / "head.csv").write_text("a,b\n")
    with pytest.raises(InvalidData, match=r"head\.csv' holds no rows"):
        read_table(tmp_path / "head.csv")
    write(people(3).assign(age=7), tmp_path / "young.csv")
    with pytest.raises(InvalidData, match=r"no row of .*young\.csv' fits .*row 0: 'age' must be"):
        read_people(tmp_path / "young.csv", SPACE)


def test_two_people_of_one_id_are_refused(tmp_path):
    frame = people(30).assign(number=range(30))
    frame.loc[21, "id"] = " person 4 "
    write(frame, tmp_path / "people.csv")
    with pytest.raises(InvalidData, match="has the id 'person 4' twice in 'id', in rows 4 and 21"):
        read_people(tmp_path / "people.csv", SPACE)
    assert len(read_people(tmp_path / "people.csv", SPACE, "number")) == 30
    frame.loc[[4, 21], "id"] = ""
    assert len(read_people(write(frame, tmp_path / "people.csv"), SPACE)) == 30


def test_rows_that_do_not_fit_are_passed_over_each_with_its_reason():
    space = mixed_space()
    records = random_records(space, 5, np.random.default_rng(0))
    table = pd.DataFrame(records)
    table.loc[1, "age"] = 12
    table.loc[3, "job"] = "cook"
    states, rows, reasons = fitting_states(space, table)
    assert rows.tolist() == [0, 2, 4]
    expected = space.encode([records[i] for i in (0, 2, 4)])
    assert np.array_equal(states, expected, equal_nan=True)
    assert list(reasons) == [1, 3]
    assert reasons[1].startswith("'age' must be at least 18 (got 12")
    assert "cook" in reasons[3]
    with pytest.raises(InvalidData, match="lacks the columns age"):
        fitting_states(space, table.drop(columns="age"))


def test_spaces_around_a_category_stay_where_it_is_declared_with_them(tmp_path):
    """UCI's Adult is written so, and pandas and every model fitted on it keep the space."""
    path = tmp_path / "people.csv"
    path.write_text("age, work,decided\n30, Private, >50K\n40, State-gov, <=50K\n50, ?, >50K\n")
    table, _ = read_table(path)
    assert table["work"].tolist()[:2] == [" Private", " State-gov"]
    declared = FeatureSpace((Feature("work", "categorical", categories=(" Private", "State-gov")),))
    [chunk] = open_table(path).chunks(3)
    assert typed(chunk.frame, declared)["work"].tolist() == [" Private", "State-gov", None]
    assert declared["work"].show(0.0) == "Private"
