"""The notebooks of the gallery run from top to bottom, and show what is stored in them."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "gallery").glob("*.ipynb"))
NEEDS = {
    "scikit-learn": ("matplotlib",),
    "lightgbm-missing-values": ("lightgbm",),
    "torch": ("torch",),
    "beside-dice": ("dice_ml",),
    "user-study": ("pydantic_settings", "fastapi"),
}


def load_runner():
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "docs" / "notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.slow
def test_the_notebook_runs(path):
    for module in NEEDS.get(path.stem, ()):
        found = pytest.importorskip(module, reason=f"'{module}' is not installed")
        if module == "matplotlib":
            found.use("Agg")
    runner = load_runner()
    stored = runner.read(path)
    ran = runner.run(stored)
    for now, before in zip(ran["cells"], stored["cells"], strict=True):
        kinds = [
            [output["output_type"] for output in cell.get("outputs", ())] for cell in (now, before)
        ]
        assert kinds[0] == kinds[1], "run python docs/notebooks.py docs/gallery/*.ipynb"


def test_an_error_in_a_notebook_is_an_error(tmp_path):
    cell = {"cell_type": "code", "source": ["1 / 0"], "outputs": [], "metadata": {}}
    with pytest.raises(ZeroDivisionError):
        load_runner().run({"cells": [cell]})


def test_what_a_cell_shows_is_what_a_notebook_would_show():
    # Figures that other tests left open would be shown.
    pytest.importorskip("matplotlib.pyplot").close("all")

    def cell(source):
        return {"cell_type": "code", "source": [source], "outputs": [], "metadata": {}}

    ran = load_runner().run({"cells": [cell("a = 2\nprint('b')\na + 1"), cell("a"), cell("a = 3")]})
    outputs = [c["outputs"] for c in ran["cells"]]
    assert outputs[0][0]["text"] == "b\n"
    assert [o[-1]["data"]["text/plain"] for o in outputs[:2]] == ["3", "2"]
    assert outputs[2] == []
