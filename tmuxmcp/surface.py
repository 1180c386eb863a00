"""The surface: which tools this process offers, decided once at startup and frozen.

Expand the toolsets, add TOOLS, remove EXCLUDE_TOOLS; then every aggregate loses what is off. A tool
off the surface is neither listed nor callable. This is inventory: it does not bound what an enabled
pane-input or pane-command tool can make a pane's program do.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import msgspec

from tmuxmcp.errors import StartupError
from tmuxmcp.manifest import CONSERVATIVE, OUTPUTS, TOOLSETS, Hints, Manifest, Row, Toolset
from tmuxmcp.settings import Settings

ServerState = Literal["absent", "started", "existing"]
"""Of the tmux server on the socket: not there, started by this process, there before."""
Ambient = Literal["quiet", "active", "unknown"]
"""What was found of hooks and command aliases beyond tmux's own: none, some, or it could not be told."""
Grounds = Literal["default", "TOOLSETS", "TOOLS"]
"""What makes a tool callable."""

DEFAULT_TOOLSETS: tuple[Toolset, ...] = ("inspect", "manage", "execute")


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that is offered."""

    row: Row
    """Its manifest row. Of an aggregate: cut to what it can call here, which `nested` names."""
    hints: Hints
    """What is advertised of the whole call; `row.hints` is about the direct operation."""
    grounds: Grounds

    @property
    def needs_own_server(self) -> bool:
        """Whether the tool is on only because no tmux server was there at startup.

        A call then has to check that this process started the server it meets.
        """
        return self.grounds == "default" and self.row.toolset not in DEFAULT_TOOLSETS


class Off(msgspec.Struct, frozen=True):
    """A toolset or a tool that is not offered."""

    name: str
    reason: str
    remedy: str


class Surface(msgspec.Struct, frozen=True, kw_only=True):
    """What is offered, and why the rest is not. Both in manifest order."""

    tools: Mapping[str, Tool]
    toolsets: tuple[Toolset, ...]
    """Those selected, with or without tools left in them."""
    manifest: Manifest
    refused: Mapping[str, Off]
    """For every tool that is not offered; those of one toolset that is off share the entry."""

    @property
    def off(self) -> tuple[Off, ...]:
        return tuple(dict.fromkeys(self.refused.values()))

    @property
    def command_capable(self) -> bool:
        """Whether a client can type into a pane or run a command there."""
        return any(tool.row.reach in ("pane-input", "pane-command") for tool in self.tools.values())

    def explain(self, name: str) -> str:
        """Why a tool that is not offered cannot be called, and what to do about it."""
        if off := self.refused.get(name):
            return (
                f"{name} (toolset {self.manifest[name].toolset}) is not enabled: {off.reason}. {off.remedy}"
            )
        close = difflib.get_close_matches(name[:100], self.manifest)
        hint = f" Names like it: {', '.join(close)}." if close else " tools/list has the names."
        return f"There is no tool {_shown(name)}.{hint}"


def resolve(
    manifest: Manifest, settings: Settings, *, server_state: ServerState, ambient: Ambient
) -> Surface:
    """The surface for these settings and for what was found on the socket at startup.

    Raises `StartupError` for the name of a toolset or a tool that does not exist.
    """
    manifest = MappingProxyType({name: row for name, row in manifest.items() if row.server == "terminal"})
    _refuse_unknown(settings, "toolsets", settings.toolsets or (), TOOLSETS)
    _refuse_unknown(settings, "tools", settings.tools, manifest)
    _refuse_unknown(settings, "exclude_tools", settings.exclude_tools, manifest)

    toolsets_off = _toolsets_off(settings, server_state)
    choices = {name: _choose(row, settings, toolsets_off.get(row.toolset)) for name, row in manifest.items()}
    selected = [row for name, row in manifest.items() if not isinstance(choices[name], Off)]
    tools: dict[str, Tool] = {}
    refused: dict[str, Off] = {}
    for name, row in manifest.items():
        choice = choices[name]
        if row.nested and not isinstance(choice, Off):
            inner = [tool for tool in selected if _can_call(row, tool, settings)]
            if inner:
                row = _cut(row, inner)
            else:
                remedy = f"Enable one of: {', '.join(row.nested)}."
                choice = Off(name, "no tool that it could call is enabled", remedy)
        if isinstance(choice, Off):
            refused[name] = choice
        else:
            hints = row.hints if ambient == "quiet" else CONSERVATIVE
            tools[name] = Tool(row=row, hints=hints, grounds=choice)
    return Surface(
        tools=MappingProxyType(tools),
        toolsets=tuple(toolset for toolset in TOOLSETS if toolset not in toolsets_off),
        manifest=manifest,
        refused=MappingProxyType(refused),
    )


def enabling(settings: Settings, toolsets: Collection[str]) -> str:
    """What an operator writes to select these toolsets, in the spelling that is in use."""
    wanted = ",".join(toolset for toolset in TOOLSETS if toolset in toolsets)
    return f"{settings.spelling('toolsets')}={wanted}"


def _shown(name: str) -> str:
    return ascii(name if len(name) <= 100 else name[:100] + "...")


def _refuse_unknown(settings: Settings, field: str, names: Iterable[str], valid: Collection[str]) -> None:
    for name in names:
        if name not in valid:
            close = difflib.get_close_matches(name[:100], valid, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise StartupError(
                f"{settings.spelling(field)} names {_shown(name)}, which does not exist.{hint} "
                f"Valid: {', '.join(valid)}."
            )


def _toolsets_off(settings: Settings, server_state: ServerState) -> dict[Toolset, Off]:
    if settings.toolsets is not None:
        selected: Sequence[str] = settings.toolsets
        reason = f"{settings.spelling('toolsets')} does not name this toolset"
    else:
        reason = _why_no_teardown(settings, server_state)
        selected = DEFAULT_TOOLSETS if reason else TOOLSETS
    return {
        toolset: Off(
            toolset, reason, f"Set {enabling(settings, [*selected, toolset])} and restart this MCP server."
        )
        for toolset in TOOLSETS
        if toolset not in selected
    }


def _why_no_teardown(settings: Settings, server_state: ServerState) -> str:
    """Why the defaults leave teardown out; empty where all that it could delete will be of our making."""
    if settings.socket != Settings().socket:
        why = f"the socket is {settings.socket}, not the default {Settings().socket}"
    elif settings.tmux_config != "minimal":
        why = "the tmux configuration is not the minimal one"
    elif server_state != "absent":
        why = "a tmux server was there at startup, and its sessions may be someone else's"
    else:
        return ""
    return f"{why}, so deletion has to be asked for"


def _choose(row: Row, settings: Settings, toolset_off: Off | None) -> Grounds | Off:
    if row.name in settings.exclude_tools:
        exclude = settings.spelling("exclude_tools")
        return Off(row.name, f"{exclude} names it", f"Remove it from {exclude} and restart this MCP server.")
    if settings.toolsets is not None and not toolset_off:
        return "TOOLSETS"
    if row.name in settings.tools:
        return "TOOLS"
    if toolset_off:
        return toolset_off
    if row.default_enabled:
        return "default"
    tools = settings.spelling("tools")
    return Off(row.name, "it is not on by default", f"Add it to {tools} and restart this MCP server.")


def _can_call(aggregate: Row, tool: Row, settings: Settings) -> bool:
    """Whether an aggregate nests the tool and may carry its results: by its own row, or as TOOLS names it."""
    carried = set(tool.output) <= set(aggregate.output) or tool.name in settings.tools
    return tool.name in aggregate.nested and carried


def _cut(row: Row, inner: Sequence[Row]) -> Row:
    """The row of an aggregate that can call these tools only."""
    return msgspec.structs.replace(
        row,
        nested=tuple(tool.name for tool in inner),
        output=tuple(output for output in OUTPUTS if any(output in tool.output for tool in inner)),
        may_expose_secrets=any(tool.may_expose_secrets for tool in inner),
        may_return_untrusted_content=any(tool.may_return_untrusted_content for tool in inner),
        hints=msgspec.structs.replace(row.hints, open_world=any(tool.hints.open_world for tool in inner)),
    )
