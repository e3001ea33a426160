"""How large is each extra, installed? What it brings beyond the core, with all that it needs.

Sizes are those of the files of this environment; run it in one that holds every extra.

``python benchmarks/extras.py [--quick] [--json FILE]``
"""

from __future__ import annotations

import argparse
import json
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def closure(requirements: list[str]) -> set[str]:
    """Everything these requirements bring, as far as it is installed."""
    seen: set[tuple[str, frozenset[str]]] = set()
    own = [Requirement(text) for text in requirements]
    waiting = [(canonicalize_name(need.name), frozenset(need.extras)) for need in own]
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen:
            continue
        try:
            needed = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        seen.add((name, extras))
        for text in needed:
            need = Requirement(text)
            wanted = [{"extra": extra} for extra in extras] or [{"extra": ""}]
            if need.marker is None or any(need.marker.evaluate(each) for each in wanted):
                waiting.append((canonicalize_name(need.name), frozenset(need.extras)))
    return {name for name, _ in seen}


def size(names: set[str]) -> float:
    """Megabytes of the files of these packages."""
    total = 0
    for name in names:
        for file in metadata.files(name) or []:
            place = file.locate()
            total += place.stat().st_size if place.is_file() else 0  # type: ignore[attr-defined]
    return total / 1e6


def main() -> None:
    """Print and store the sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the same: it takes seconds")
    parser.add_argument("--json")
    given = parser.parse_args()
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    core = closure(project["dependencies"])
    sizes = {"core": size(core)}
    for extra, brought in sorted(project["optional-dependencies"].items()):
        sizes[extra] = size(closure(brought) - core)
    for name, megabytes in sizes.items():
        print(f"{name:12} {megabytes:8.0f} MB")
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(
                {f"{name}.megabytes": round(mb, 1) for name, mb in sizes.items()}, file, indent=1
            )


if __name__ == "__main__":
    main()
