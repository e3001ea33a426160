"""The examples of docs/portfolio.md can be followed to the end."""

import json
import re
from pathlib import Path

import pandas as pd

PAGE = Path(__file__).parents[2] / "docs" / "portfolio.md"


def test_the_whole_way_from_python(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S))
    known = {}
    exec(compile(code, str(PAGE), "exec"), known)
    assert "what 1 person of the table said in them was used" in capsys.readouterr().out
    plans = pd.read_parquet("plans.parquet")
    row = plans.iloc[known["refused"]]
    assert json.loads(row["limits"]) == {"features": ["monthly_income"]}
    assert "monthly_income" not in {step["feature"] for step in json.loads(row["steps"])}
    assert (tmp_path / "report.html").stat().st_size > 1_000
