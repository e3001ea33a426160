"""How is a notebook of the gallery run, and its output kept in it?

``python docs/notebooks.py docs/gallery/*.ipynb`` runs notebooks from top to bottom and stores what
they show. The tests run their cells too, and the site shows what is stored. Nothing but Python is
needed: cells are plain Python, and the last expression of each is shown as a notebook would.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the output of every code cell; the first error ends it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = []
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            outputs = _outputs("".join(cell["source"]), names, f"cell {number}")
            cell = {**cell, "execution_count": None, "outputs": outputs}
        cells.append(cell)
    return {**notebook, "cells": cells}


def _outputs(source: str, names: dict[str, Any], name: str) -> list[dict[str, Any]]:
    tree = ast.parse(source, name)
    shown = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), names)
        if isinstance(shown, ast.Expr):
            value = eval(compile(ast.Expression(shown.value), name, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    pictures = _pictures()
    if value is not None and not pictures:
        outputs.append(_display({"text/plain": repr(value), **_html(value)}))
    return [*outputs, *pictures]


def _display(data: dict[str, str]) -> dict[str, Any]:
    return {"output_type": "display_data", "data": data, "metadata": {}}


def _html(value: Any) -> dict[str, str]:
    found = value._repr_html_() if hasattr(value, "_repr_html_") else None
    return {"text/html": found} if found else {}


def _pictures() -> list[dict[str, Any]]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    found = []
    for number in pyplot.get_fignums() if pyplot else ():
        content = io.BytesIO()
        pyplot.figure(number).savefig(content, format="png", dpi=70)
        pyplot.close(number)
        picture = base64.b64encode(content.getvalue()).decode()
        found.append(_display({"text/plain": "a picture", "image/png": picture}))
    return found


def as_markdown(notebook: dict[str, Any]) -> str:
    """The notebook as a page: its texts, its code, and the output stored in it."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                place = f"data:image/png;base64,{data['image/png']}"
                parts.append(f'<img alt="The picture the code above draws" src="{place}">')
            elif "text/html" in data:
                parts.append(f'<div class="output">{" ".join(data["text/html"].split())}</div>')
            else:
                parts.append(
                    f"```text\n{output.get('text', data.get('text/plain', '')).rstrip()}\n```"
                )
    return "\n\n".join(parts)


def read(path: Path) -> dict[str, Any]:
    """The notebook in a file."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def main() -> None:
    """Run the notebooks named and store their output."""
    with contextlib.suppress(ImportError):
        import matplotlib

        matplotlib.use("Agg")
    for name in sys.argv[1:]:
        path = Path(name)
        text = json.dumps(run(read(path)), indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
        print(f"{path}: run")


if __name__ == "__main__":
    main()
