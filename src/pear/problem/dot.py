"""How is a graph of features written to, and read from, Graphviz DOT?

References: the DOT grammar as Graphviz documents it, without subgraphs and ports.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pear.errors import InvalidProblem

Edges = tuple[tuple[str, str], ...]

_TOKEN = re.compile(
    r"""\s+ | //[^\n]* | \#[^\n]* | /\*.*?\*/              # space and comments
      | (?P<quoted>"(?:\\.|[^"\\])*")
      | (?P<word>[A-Za-z_\u0080-\uffff][A-Za-z0-9_\u0080-\uffff]* | -?(?:\.\d+|\d+(?:\.\d*)?))
      | (?P<sign>->|--|[{}\[\];,=])""",
    re.VERBOSE | re.DOTALL,
)


def write_dot(nodes: Sequence[tuple[str, str]], edges: Edges) -> str:
    """A digraph of (name, label) nodes.

    >>> print(write_dot([("a", "income"), ("b", "b")], (("a", "b"),)), end="")
    digraph costs {
      "a" [label="income"];
      "b" [label="b"];
      "a" -> "b";
    }
    """
    lines = [f"  {_quote(name)} [label={_quote(label)}];" for name, label in nodes]
    lines += [f"  {_quote(parent)} -> {_quote(child)};" for parent, child in edges]
    return "\n".join(["digraph costs {", *lines, "}"]) + "\n"


def read_dot(text: str) -> Edges:
    """The edges of a digraph, in the order they stand; attributes are passed over.

    >>> read_dot('digraph { a -> b -> "c d" [weight=2]; e }')
    (('a', 'b'), ('b', 'c d'))
    """
    tokens = _tokens(text)
    words = [word for word, _ in tokens]
    opening = words.index("{") if "{" in words else -1
    if opening < 0 or not words or words[-1] != "}":
        raise InvalidProblem("the DOT text has no { … } body; it must be one digraph")
    if "digraph" not in words[:opening]:
        raise InvalidProblem("the DOT text must be a digraph; an undirected graph has no parents")
    edges: list[tuple[str, str]] = []
    before, arrow, depth = "", False, 0
    for word, is_name in tokens[opening + 1 : -1]:
        if not is_name and word in ("{", "}", "--"):
            raise InvalidProblem(
                f"the DOT text has {word!r} inside its body; write edges as a -> b, no subgraphs"
            )
        depth += (not is_name and word == "[") - (not is_name and word == "]")
        if depth or (not is_name and word == "]"):
            continue
        if not is_name:
            if word == "->" and (arrow or not before):
                raise InvalidProblem("the DOT text has an arrow without a name before it")
            arrow = word == "->"
            before = before if arrow else ""
            continue
        if arrow:
            edges.append((before, word))
        before, arrow = word, False
    if arrow:
        raise InvalidProblem("the DOT text has an arrow without a name after it")
    return tuple(edges)


def _tokens(text: str) -> list[tuple[str, bool]]:
    """(text, whether it is a name) of each token; space and comments are left out."""
    found, place = [], 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise InvalidProblem(
                f"the DOT text cannot be read at {text[place : place + 20]!r}; "
                "put names in double quotes"
            )
        place = match.end()
        if match["quoted"]:
            found.append((re.sub(r"\\([\\\"])", r"\1", match["quoted"][1:-1]), True))
        elif match["word"] or match["sign"]:
            found.append((match["word"] or match["sign"], bool(match["word"])))
    return found


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
