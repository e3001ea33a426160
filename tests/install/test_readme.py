"""The README keeps its promises: its example runs, its links lead somewhere, it is short."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


def test_there_is_one_example_of_about_fifteen_lines():
    [example] = EXAMPLES
    lines = [line for line in example.splitlines() if line.strip()]
    assert 8 <= len(lines) <= 18


@pytest.mark.slow
def test_the_example_runs_as_it_stands(tmp_path):
    [example] = EXAMPLES
    script = tmp_path / "example.py"
    script.write_text(example, encoding="utf-8")
    finished = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=240, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.strip()


def test_every_page_of_the_documentation_has_its_place_in_the_site():
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"([\w/-]+\.md)", site))
    docs = ROOT / "docs"
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    notebooks = {f"gallery/{path.stem}.md" for path in docs.glob("gallery/*.ipynb")}
    assert listed == pages | notebooks


def test_the_readme_fits_two_screens():
    assert len(README.splitlines()) <= 100
