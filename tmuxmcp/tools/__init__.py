"""The tools: for each manifest row one function of the same name, in the module of its toolset.

A function takes the call under way and its arguments, and returns a result::

    async def rename_window(call: Call, args: RenameWindow) -> WindowRow:
        \"\"\"What the model is told after the opener: one paragraph.\"\"\"

Arguments and results are msgspec structs. What a client can get wrong is raised as a `ToolError`.
"""

from __future__ import annotations

import importlib
import inspect as functions
import typing
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import msgspec

from tmuxmcp.arguments import Parameters
from tmuxmcp.errors import StartupError
from tmuxmcp.manifest import FILE, Manifest, Row
from tmuxmcp.settings import Settings
from tmuxmcp.startup import Found
from tmuxmcp.surface import Tool
from tmuxmcp.terminal.panes import Terminal


class Progress(Protocol):
    """Tells the client how far a call is. Costs nothing when the client did not ask for it."""

    async def __call__(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None: ...


class Nested(Protocol):
    """Calls one operation of a batch, and records it: a tool that the batch's row nests.

    Returns the result as JSON values. Raises `ToolError`, also for arguments that are none of the tool's.
    """

    async def __call__(self, index: int, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class Call:
    """One tools/call under way."""

    terminal: Terminal
    settings: Settings
    found: Callable[[], Awaitable[Found]]
    """What was found on the socket at startup; the first call may have to wait for it."""
    tool: Tool
    """The tool that is called, as it is offered here: on what grounds, and what it nests."""
    arrived: float
    """The clock's reading when the call arrived: timeouts count from here."""
    progress: Progress
    nested: Nested
    touched: list[str] = field(default_factory=list)
    """Ids that the call resolved and acted on; the audit record names them."""


class Function(NamedTuple):
    """A tool's function and the structs that its signature names."""

    function: Callable[[Call, Any], Awaitable[msgspec.Struct]]
    arguments: type[msgspec.Struct]
    result: type[msgspec.Struct]

    @property
    def doc(self) -> str:
        return self.function.__doc__ or ""


def registry(manifest: Manifest) -> Mapping[str, Function]:
    """The function of every row that this server can offer.

    Raises `StartupError` where a row and its function do not agree: it names the row and the column.
    """
    return {row.name: _function(row) for row in manifest.values() if row.server == "terminal"}


def _function(row: Row) -> Function:
    module = importlib.import_module(f"{__name__}.{row.toolset}")
    function = getattr(module, row.name, None)
    if not functions.iscoroutinefunction(function):
        raise _fault(row, "name", f"{module.__name__} has no coroutine function of this name")
    types = typing.get_type_hints(function, include_extras=True)
    parameters = list(functions.signature(function).parameters)
    if len(parameters) != 2 or not {*parameters, "return"} <= types.keys():
        raise _fault(row, "name", "the function must take a call and its arguments, with types")
    found = Function(function, types[parameters[1]], types["return"])
    if not found.doc.strip():
        raise _fault(row, "name", "the function has no docstring for the description")
    names = list(Parameters(found.arguments).names)
    for name in names:
        if name not in row.sinks:
            raise _fault(row, "sinks", f"the parameter {name} has none")
    for name in row.sinks:
        if name not in names:
            raise _fault(
                row, f"sinks.{name}", f"there is no such parameter; there are {', '.join(names) or 'none'}"
            )
    return found


def _fault(row: Row, column: str, problem: str) -> StartupError:
    return StartupError(f"{FILE}: {row.name}: {column}: {problem}")
