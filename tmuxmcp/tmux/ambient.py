"""What is configured around our commands on a server that is already there: hooks and command aliases.

A hook can run anything after nearly any tmux command, and a command alias can replace one. Finding
none is evidence about this moment, not about how the server was started or what is added later.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

import anyio

from tmuxmcp.errors import NoServer, NotFound, TmuxUnusable, ToolError
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import Command, command
from tmuxmcp.tmux.records import Template

DEADLINE: Final = 1.0
"""Seconds after which a probe that is not done tells nothing."""

_DEFAULT_ALIASES: Final = {
    "split-pane=split-window",
    "splitp=split-window",
    "server-info=show-messages -JT",
    "info=show-messages -JT",
    "choose-window=choose-tree -w",
    "choose-session=choose-tree -s",
}
"""tmux's own, the same from 3.2a to 3.8."""
_TARGETS: Final = Template(session="#{session_id}", window="#{window_id}", pane="#{pane_id}")
_TARGETS_AT_ONCE: Final = 150
_ATTEMPTS: Final = 3
_HOOK: Final = re.compile(r"^(?!command-alias\[)\S+\[\d+\] ", re.MULTILINE)
_ALIAS: Final = re.compile(r'^command-alias\[\d+\] ("?)(.*)\1$', re.MULTILINE)


class Ambient(NamedTuple):
    """What a probe found. `quiet`: nothing beyond tmux's own; `unknown`: it could not be told."""

    state: Literal["quiet", "active", "unknown"]
    server_exists: bool
    hooks: int = 0
    aliases: int = 0


async def probe(client: Client, deadline: float = DEADLINE) -> Ambient:
    """Look for hooks in every scope and for command aliases beyond tmux's own; never start a server.

    Without a server it is the minimal configuration that makes the one to come quiet. Raises
    `TmuxUnusable`; any other failure, and the deadline, leave it `unknown`.
    """
    with anyio.move_on_after(deadline):
        for _ in range(_ATTEMPTS):
            try:
                return await _probe(client)
            except NoServer:
                return Ambient("quiet" if client.config == "minimal" else "unknown", server_exists=False)
            except NotFound:
                pass  # A pane went while its hooks were asked for.
            except TmuxUnusable:
                raise
            except ToolError:
                break
    return Ambient("unknown", server_exists=True)


async def _probe(client: Client) -> Ambient:
    # An alias hides behind the exact name of a command, so unambiguous prefixes are used throughout;
    # and no hook runs after show-hooks, which shows options too, so that looking for hooks sets none off.
    said = await client.call(
        command("show-hook", "-g", "command-alias"),
        command("show-hook", "-g"),
        command("show-hook", "-gw"),
    )
    aliases = sum(match[2] not in _DEFAULT_ALIASES for match in _ALIAS.finditer(said))
    hooks = len(_HOOK.findall(said))
    if hooks or aliases:
        return Ambient("active", True, hooks, aliases)
    try:
        panes = await client.rows(listing=command("list-pane", "-a"), template=_TARGETS)
    except NotFound:
        panes = []  # The server has no session.
    flags = {"session": (), "window": ("-w",), "pane": ("-p",)}
    asks: list[Command] = [
        command("show-hook", *flags[kind], "-t", id)
        for kind in flags
        for id in sorted({row[kind] for row in panes})
    ]
    for at in range(0, len(asks), _TARGETS_AT_ONCE):
        hooks += len(_HOOK.findall(await client.call(*asks[at : at + _TARGETS_AT_ONCE])))
    return Ambient("active" if hooks else "quiet", True, hooks)
