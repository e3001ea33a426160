"""What does the documentation site make itself? Pages of the gallery, and the list of commands."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import notebooks
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: Any) -> Files:
    """Every notebook becomes a page beside the file itself, which stays for download."""
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        page = notebooks.as_markdown(notebooks.read(Path(file.abs_src_path)))
        # The link is relative to the page, a folder of its own.
        note = f'\n\n<a href="../{Path(file.src_uri).name}" download>Download this notebook</a>\n'
        uri = file.src_uri.replace(".ipynb", ".md")
        files.append(File.generated(config, uri, content=page + note))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to notebooks lead to their pages; links to files outside the site are plain words."""
    markdown = re.sub(r"\]\(([\w./-]+)\.ipynb\)", r"](\1.md)", markdown)
    if page.file.src_uri == "reference/commands.md":
        return markdown.replace("<!-- commands -->", commands())
    outside = r"\[([^\]]+)\]\(\.\./[^)]*\)"
    return markdown if "/" in page.file.src_uri else re.sub(outside, r"\1", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Docstrings name things as Sphinx would; here the name itself is enough."""
    return re.sub(r":(?:class|func|meth|attr|mod|data):(?=<code>)", "", html)


def commands() -> str:
    """Every command with its help and its options, from the program itself."""
    import typer

    from pear.cli.main import app

    parts = []
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        help_text = "\n\n".join(" ".join(p.split()) for p in (command.help or "").split("\n\n"))
        rows = []
        for option in command.params:
            given = option.opts if option.param_type_name == "option" else [option.metavar]
            names = ", ".join(f"`{name or option.name.upper()}`" for name in given)
            rows.append(f"| {names} | {(getattr(option, 'help', '') or '').replace('|', '/')} |")
        table = "\n".join(["| | |", "|---|---|", *rows])
        parts.append(f"## `pear {name}`\n\n{help_text}\n\n{table}")
    return "\n\n".join(parts)
