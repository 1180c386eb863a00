"""Imports point down only: main, server, tools, terminal, tmux, and the ground that all stand on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tmuxmcp

PACKAGE = Path(tmuxmcp.__file__).parent
GROUND = {"errors", "limits"}
BELOW = {
    "tmux": GROUND,
    "terminal": GROUND | {"tmux"},
    "tools": GROUND | {"tmux", "terminal", "arguments", "manifest", "settings", "startup", "surface"},
}
"""For each layer what of tmuxmcp it may import, besides itself."""
SDK = {"frames.py", "opening.py", "server.py", "transport.py"}
"""The modules that may import the SDK."""


def imported(path: Path) -> Iterator[str]:
    """The dotted names of what a module imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            yield from (f"{node.module}.{each.name}" for each in node.names)


@pytest.mark.parametrize("layer", BELOW)
def test_a_layer_imports_only_what_is_below_it(layer: str) -> None:
    paths = list((PACKAGE / layer).glob("*.py"))
    assert paths
    for path in paths:
        parts = (name.split(".") for name in imported(path))
        ours = {name[1] for name in parts if name[0] == "tmuxmcp"}
        assert ours <= BELOW[layer] | {layer}, path.name


def test_only_the_binding_imports_the_sdk() -> None:
    paths = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] != "relay"]
    using = {path.name for path in paths if any(name.split(".")[0] == "mcp" for name in imported(path))}
    assert using == SDK
