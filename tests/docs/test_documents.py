"""The documents agree with the project: links lead somewhere, examples run, parts are named."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "pear"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]


AFTERWARDS = {
    "portfolio.md": """
import pandas as pd
row = pd.read_parquet("plans.parquet").iloc[refused]
assert json.loads(row["limits"]) == {"features": ["monthly_income"]}
assert "monthly_income" not in {step["feature"] for step in json.loads(row["steps"])}
"""
}
"""What must hold once the examples of a page have run."""


def links(text: str) -> list[str]:
    without_code = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\]\((?!https?:|#|mailto:)([^)\s#]+)", without_code)


def examples(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def test_the_documents_are_found():
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md"} <= set(NAMES)


@pytest.mark.parametrize("path", DOCUMENTS, ids=NAMES)
def test_links_lead_to_files(path):
    missing = [link for link in links(path.read_text()) if not (path.parent / link).exists()]
    assert missing == []


# The README's example has its own test, in tests/install.
@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if path.name != "README.md" and examples(path.read_text())],
    ids=lambda path: path.name,
)
@pytest.mark.slow
def test_examples_run_one_after_the_other(path, tmp_path):
    script = tmp_path / "examples.py"
    script.write_text("\n".join([*examples(path.read_text()), AFTERWARDS.get(path.name, "")]))
    finished = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=tmp_path,
    )
    assert finished.returncode == 0, finished.stderr


def test_the_architecture_names_every_part_of_the_package():
    described = (ROOT / "docs" / "architecture.md").read_text()
    parts = {path.stem for path in SOURCE.iterdir() if not path.name.startswith("_")} - {"py"}
    assert {part for part in parts if f"`{part}`" not in described} == set()


def test_every_image_is_used_by_some_document():
    texts = "".join(path.read_text() for path in DOCUMENTS)
    images = [path.name for path in (ROOT / "docs" / "images").glob("*")]
    assert images
    assert [name for name in images if name not in texts] == []
