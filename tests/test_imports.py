"""The import order of docs/architecture.md, and the length of files, held by reading the source."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "pear"
FILES = sorted(SOURCE.rglob("*.py"))

# A part may import what stands in a later layer, and itself; parts of one layer stand side by
# side and never import each other.
LAYERS = (
    {"cli", "service", "study", "experiments", "portfolio", "__main__"},
    {"elicitation"},
    {"planning", "preferences"},
    {"datasets"},
    {"decision"},
    {"tables"},
    {"problem"},
    {"errors", "optional", "parallel", "arrays", "statistics", "writing"},
)
LEVEL = {part: level for level, layer in enumerate(LAYERS) for part in layer}
# Inside the first and last layers the single arrows that are meant.
ARROWS = {
    ("__main__", "cli"),
    ("cli", "service"),
    ("cli", "study"),
    ("study", "service"),
    ("cli", "experiments"),
    ("cli", "portfolio"),
    ("optional", "errors"),
    ("statistics", "arrays"),
    ("writing", "errors"),
    ("parallel", "errors"),
    ("parallel", "optional"),
}


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_parts(tree: ast.Module, path: Path) -> set[str]:
    """Parts of pear named by the imports of a file, inside functions too."""
    package = ("pear", *path.relative_to(SOURCE).parts[:-1])
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            modules |= {f"{module}.{alias.name}" for alias in node.names}
    return {name.split(".")[1] for name in modules if name.startswith("pear.")}


def may_import(importer: str, imported: str) -> bool:
    if importer == imported or imported not in LEVEL:
        return True  # A name of the package itself, such as __version__.
    return LEVEL[importer] < LEVEL[imported] or (importer, imported) in ARROWS


def wrong_imports(path: Path) -> set[str]:
    imported = imported_parts(ast.parse(path.read_text(encoding="utf-8")), path)
    return {part for part in imported if not may_import(part_of(path), part)}


def test_there_is_source_to_read():
    assert len(FILES) > 5


def test_every_part_has_its_place_in_the_order():
    assert {part_of(path) for path in FILES} - {"__init__"} <= set(LEVEL)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    if path != SOURCE / "__init__.py":  # The package's face may name any part.
        assert wrong_imports(path) == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_file_is_longer_than_600_lines(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 600


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("import pear.planning.exact", {"planning"}),
        ("from pear import planning", {"planning"}),
        ("from pear.planning import ExactPlanner", {"planning"}),
        ("from ..planning.exact import search", {"planning"}),
        ("def late():\n    from pear.elicitation import Session", {"elicitation"}),
        ("import numpy as np\nfrom dataclasses import dataclass", set()),
    ],
)
def test_the_reader_sees_every_kind_of_import(text, parts):
    assert imported_parts(ast.parse(text), SOURCE / "preferences" / "prior.py") == parts


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("planning", "problem", True),
        ("problem", "planning", False),
        ("planning", "preferences", False),
        ("preferences", "planning", False),
        ("parallel", "problem", False),
        ("elicitation", "preferences", True),
        ("service", "cli", False),
    ],
)
def test_the_order_is_the_documented_one(importer, imported, allowed):
    assert may_import(importer, imported) is allowed
