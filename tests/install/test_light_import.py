"""The core stands alone: light to import, whole without the extras, clear about what is missing."""

import json
import subprocess
import sys
import time

import pytest

from pear.optional import EXTRA_OF_MODULE

pytestmark = pytest.mark.slow

HEAVY = {"torch", "fastapi", "ray", "matplotlib", "onnxruntime"}
OPTIONAL = sorted(HEAVY | set(EXTRA_OF_MODULE) | {"starlette", "psycopg", "httpx"})

# Put before a script, this makes the optional packages as good as not installed.
BLOCKER = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {set(OPTIONAL)!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        return None

sys.meta_path.insert(0, Blocker())
"""


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=240, check=False
    )


def output_of(script: str) -> str:
    finished = run(script)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_importing_pear_imports_none_of_the_heavy_packages():
    loaded = json.loads(output_of("import sys, json, pear; print(json.dumps(list(sys.modules)))"))
    assert "pear" in loaded
    assert HEAVY.isdisjoint(loaded)


def test_a_skops_file_is_loaded_without_torch(tmp_path):
    script = f"""
import sys
from pear.decision import load_model, save_sklearn
from pear.datasets import loan_book_problem, loan_book_table
from sklearn.linear_model import LogisticRegression
table = loan_book_table(200, 0)[["monthly_income", "savings", "approved"]]
model = LogisticRegression(max_iter=5_000).fit(table.drop(columns="approved"), table["approved"])
place = save_sklearn(model, {str(tmp_path / "model.skops")!r})
load_model(place, loan_book_problem())
print("torch" in sys.modules)
"""
    assert output_of(script).strip() == "False"


def test_importing_pear_takes_under_a_second():
    script = "import time; t = time.perf_counter(); import pear; print(time.perf_counter() - t)"
    # The best of several, for other work on the machine only ever adds to the time.
    for _ in range(8):
        seconds = float(output_of(script))
        if seconds < 1.0:
            return
        time.sleep(1.0)
    pytest.fail(f"import pear took {seconds:.2f} s even in the best of 8 tries")


def test_the_public_names_are_there_without_any_extra():
    names = json.loads(
        output_of(
            BLOCKER
            + "import json, pear\n"
            + "names = list(getattr(pear, '__all__', []))\n"
            + "assert all(getattr(pear, name) is not None for name in names)\n"
            + "print(json.dumps(names))"
        )
    )
    assert len(names) == len(set(names))


def test_nothing_else_is_seen_in_the_package():
    """Even after everything public was used once, no module stands among the names."""
    shown = json.loads(
        output_of(
            "import json, pear\n"
            "names = [getattr(pear, name) and name for name in pear.__all__]\n"
            "from pear import *\n"
            "print(json.dumps([dir(pear), names, sorted(k for k in globals() if k[0] != '_')]))"
        )
    )
    assert shown[0] == sorted([*shown[1], "__version__"])
    assert shown[2] == sorted([*shown[1], "json", "names", "pear"])


@pytest.mark.parametrize(
    "part", ["problem", "decision", "datasets", "planning", "preferences", "elicitation"]
)
def test_the_parts_of_the_core_import_without_any_extra(part):
    output_of(BLOCKER + f"import pear.{part}, pear.parallel")


def test_the_command_line_lists_its_commands_without_any_extra():
    shown = output_of(
        BLOCKER + "import sys\nsys.argv = ['pear', '--help']\nimport pear.__main__\n"
        "pear.__main__.main()"
    )
    assert "Usage: pear" in shown


@pytest.mark.slow
def test_a_whole_conversation_is_held_without_any_extra():
    shown = output_of(
        BLOCKER + "import sys\nsys.argv = ['pear', 'demo', '--simulate']\n"
        "from pear.cli.main import main\nmain()"
    )
    assert "Your plan" in shown
    assert "none is easier for you" in " ".join(shown.split())


@pytest.mark.slow
def test_a_table_becomes_a_problem_and_plans_without_any_extra(tmp_path):
    """``pear init`` and ``pear check`` on a scikit-learn model kept as skops."""
    script = f"""
from pear.cli.main import app
from pear.datasets import loan_book_table
from pear.decision import save_sklearn
from sklearn.linear_model import LogisticRegression

table = loan_book_table(200, 0)[["monthly_income", "savings", "age", "approved"]]
table.to_csv({str(tmp_path / "loans.csv")!r}, index=False)
model = LogisticRegression(max_iter=5_000).fit(table.drop(columns="approved"), table["approved"])
save_sklearn(model, {str(tmp_path / "model.skops")!r})
here = {str(tmp_path)!r}
app(["init", here + "/loans.csv", "-t", "approved", "-m", here + "/model.skops",
     "-o", here + "/problem.toml"], standalone_mode=False)
app(["check", here + "/problem.toml", "-d", here + "/loans.csv", "--sample", "3"],
    standalone_mode=False)
"""
    assert "Of 3 refused people sampled, 3 have a plan." in output_of(BLOCKER + script)


@pytest.mark.parametrize(("module", "extra"), sorted(EXTRA_OF_MODULE.items()))
def test_a_missing_extra_is_named_with_the_command_that_installs_it(module, extra):
    said = output_of(
        BLOCKER
        + "from pear.errors import MissingExtra\nfrom pear.optional import require\n"
        + f"try:\n    require({module!r})\nexcept MissingExtra as error:\n    print(error)"
    )
    assert f'pip install "pear-recourse[{extra}]"' in said
    assert module in said


def test_the_blocker_blocks():
    assert "ModuleNotFoundError" in run(BLOCKER + "import matplotlib").stderr


def test_every_extra_named_in_messages_exists():
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert set(EXTRA_OF_MODULE.values()) <= set(project["optional-dependencies"])
    for module, extra in EXTRA_OF_MODULE.items():
        brought = " ".join(project["optional-dependencies"][extra]).replace("-", "")
        known = module.replace("_", "") in brought
        assert known, f"'{module}' does not come with the extra '{extra}'"
