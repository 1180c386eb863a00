"""The teardown tools: they end panes, windows and sessions, and discard history."""

from __future__ import annotations

import os

import msgspec

from tmuxmcp.manifest import TOOLSETS
from tmuxmcp.surface import enabling
from tmuxmcp.terminal.guards import Guard, Refusal, Scope, caller, foreign_server, self_kill
from tmuxmcp.terminal.targets import session_target
from tmuxmcp.tmux.command import command, target
from tmuxmcp.tmux.records import Template, new_nonce
from tmuxmcp.tools import Call
from tmuxmcp.tools.parameters import InSession, OfPane, OfWindow

_STATE = Template(
    panes="#{S:#{W:#{P:#{pane_id} }}}",
    windows="#{S:#{W:#{window_id} }}",
    sessions="#{S:#{session_id} }",
    exit_empty="#{exit-empty}",
)


class Cleared(msgspec.Struct, kw_only=True):
    """The history that is gone, in rows."""

    pane_id: str
    lines: int
    server_exited: bool = False


async def clear_pane_scrollback(call: Call, args: OfPane) -> Cleared:
    """Discards the history above the screen, and leaves copy mode."""
    call.touched.append(args.pane_id)
    guard = Guard(*_provenance(call))
    template = Template(lines="#{history_size}", refused=guard.format)
    pane = target(args.pane_id)
    show, nonce = command("display-message", "-t", pane), new_nonce()
    printed = await call.terminal.client.call(
        command("has-session", "-t", pane),
        template.ask(show, nonce),
        guard.command(args.pane_id, command("clear-history", "-t", pane)),
        template.ask(show, nonce),
    )
    before, after = template.parse(printed, nonce)
    guard.check(before["refused"])
    return Cleared(pane_id=args.pane_id, lines=int(before["lines"]) - int(after["lines"]))


class Gone(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is gone. The tmux server exits with its last session, unless its `exit-empty` is off."""

    pane_ids: list[str] = []
    window_ids: list[str] = []
    session_ids: list[str] = []
    server_exited: bool


async def kill_pane(call: Call, args: OfPane) -> Gone:
    """Ends its program; with a window's last pane goes the window, with the last window the session."""
    return await _kill(call, "pane", args.pane_id, args.pane_id)


async def kill_window(call: Call, args: OfWindow) -> Gone:
    """Ends its panes' programs, in every session that it is linked to."""
    return await _kill(call, "window", args.window_id, args.window_id)


async def kill_session(call: Call, args: InSession) -> Gone:
    """Ends its programs; windows that other sessions share stay. Do this when you are done with a session
    that you created."""
    return await _kill(
        call, "session", args.session, await session_target(call.terminal.client, args.session)
    )


async def _kill(call: Call, scope: Scope, named: str, id: str) -> Gone:
    client = call.terminal.client
    if not id.startswith("="):
        call.touched.append(id)
    name = call.tool.row.name
    guard = Guard(*_provenance(call), self_kill(caller(client.socket, os.environ), name, scope, named))
    before_kill = Template(**_STATE.fields, refused=guard.format)
    asked, nonce = new_nonce(), new_nonce()
    aim = target(id)
    printed = await client.call(
        command("has-session", "-t", aim),
        before_kill.ask(command("display-message", "-t", aim), asked),
        guard.command(id, command(f"kill-{scope}", "-t", aim)),
        _STATE.ask(command("display-message"), nonce),
    )
    (before,), (after,) = before_kill.parse(printed, asked), _STATE.parse(printed, nonce)
    guard.check(before["refused"])
    panes, windows, sessions = (
        _missing(before[kind], after[kind]) for kind in ("panes", "windows", "sessions")
    )
    call.touched.extend(gone for gone in (*panes, *windows, *sessions) if gone != id)
    return Gone(
        pane_ids=panes,
        window_ids=windows,
        session_ids=sessions,
        server_exited=not after["sessions"] and after["exit_empty"] == "1",
    )


def _provenance(call: Call) -> list[Refusal]:
    """What a tool that is only on by default has to check: whose server it meets."""
    if not call.tool.needs_own_server:
        return []
    setting = enabling(call.settings, TOOLSETS)
    return [foreign_server(call.terminal.client.own, call.tool.row.name, setting)]


def _missing(before: str, after: str) -> list[str]:
    return list(dict.fromkeys(id for id in before.split() if id not in set(after.split())))
