"""Tables as they come: whole, cut off, empty, with other columns."""

import gzip
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pear.errors import InvalidData
from pear.portfolio.people import read_people
from pear.portfolio.tables import open_table, require_columns, typed
from tests.portfolio.small_problem import PROBLEM, SPACE, people, write


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
        ("people.xlsx", b"PK", "must be a .csv"),
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
        assert float(text) == value or np.isnan(value)
    else:
        assert value == text or (value is None and not text.strip())


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
    assert "lines 5 to 7 were read as one" in chunk.broken[3]


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
    assert "look like further rows; lines 5 to 7 were read as one" in chunk.broken[3]


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
    assert read_people(chunk, PROBLEM, "id").ids == ["7", "", "9", "10"]
