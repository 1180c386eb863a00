"""Functions and manifest rows have to agree before anything is served."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import msgspec
import pytest

from tmuxmcp import manifest, resources, tools
from tmuxmcp.errors import StartupError
from tmuxmcp.tools import Call, registry

ROWS = manifest.load(resources.manifest_text())


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    pass


class PaneId(msgspec.Struct, forbid_unknown_fields=True):
    pane_id: str


class Operations(msgspec.Struct, forbid_unknown_fields=True):
    operations: list[PaneId]


class Result(msgspec.Struct):
    pass


async def kill_pane(call: Call, args: PaneId) -> Result:
    """Kill a pane."""
    return Result()


async def lacks_a_parameter(call: Call, args: Nothing) -> Result:
    """Kill a pane."""
    return Result()


async def has_another_parameter(call: Call, args: Operations) -> Result:
    """Kill a pane."""
    return Result()


async def undocumented(call: Call, args: PaneId) -> Result:
    return Result()


async def untyped(call, args):  # type: ignore[no-untyped-def]
    """Kill a pane."""


def synchronous(call: Call, args: PaneId) -> Result:
    """Kill a pane."""
    return Result()


def register(monkeypatch: pytest.MonkeyPatch, function: Any) -> Any:
    """The registry of a manifest with one row, whose module has this function."""
    module = ModuleType(f"{tools.__name__}.teardown")
    if function is not None:
        vars(module)["kill_pane"] = function
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return registry({"kill_pane": ROWS["kill_pane"]})


def test_a_function_and_its_structs_are_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    found = register(monkeypatch, kill_pane)["kill_pane"]
    assert (found.function, found.arguments, found.result, found.doc) == (
        kill_pane,
        PaneId,
        Result,
        "Kill a pane.",
    )


@pytest.mark.parametrize(
    ("function", "column", "problem"),
    [
        (None, "name", "tmuxmcp.tools.teardown has no coroutine function of this name"),
        (synchronous, "name", "tmuxmcp.tools.teardown has no coroutine function of this name"),
        (untyped, "name", "the function must take a call and its arguments, with types"),
        (undocumented, "name", "the function has no docstring for the description"),
        (lacks_a_parameter, "sinks.pane_id", "there is no such parameter; there are none"),
        (has_another_parameter, "sinks", "the parameter operations.pane_id has none"),
    ],
)
def test_what_does_not_agree_names_the_row_and_the_column(
    monkeypatch: pytest.MonkeyPatch, function: Any, column: str, problem: str
) -> None:
    with pytest.raises(StartupError) as refused:
        register(monkeypatch, function)
    assert refused.value.message == f"tools.toml: kill_pane: {column}: {problem}"
