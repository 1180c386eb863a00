"""Options of sessions: set for one of them or for all, and where they hold then."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tmuxmcp.terminal.targets import session_target
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import Arg, command, target
from tmuxmcp.tmux.records import Template

_PANES = "#{W:#{P:#{pane_id}=#{history_limit} }}"


class Setting(NamedTuple):
    """Where an option holds. Without a session it is server-wide."""

    session_id: str | None
    exempt_sessions: list[str]
    """For a server-wide one: the sessions that have another value of their own."""
    history_limits: dict[str, int]
    """Of each pane within its reach, the history limit that the pane has now."""


async def set_mouse(client: Client, session: str | None, enabled: bool) -> Setting:
    """Raises `NotFound`; without a session `NoServer`."""
    return await _set(client, session, "mouse", Arg("FLAG", "on" if enabled else "off"), str(int(enabled)))


async def set_history_limit(client: Client, session: str | None, lines: int) -> Setting:
    """Raises `NotFound`; without a session `NoServer`."""
    return await _set(client, session, "history-limit", Arg("LINES", str(lines)), str(lines))


async def _set(
    client: Client, session: str | None, option: Literal["mouse", "history-limit"], value: Arg, reads: str
) -> Setting:
    if session is None:
        template = Template(sessions=f"#{{S:#{{session_id}}=#{{{option}}} }}", panes=f"#{{S:{_PANES}}}")
        change = command("set-option", "-g", option, value)
        (answer,) = await client.rows(change, listing=command("display-message"), template=template)
        exempt = [id for id, has in _pairs(answer["sessions"]).items() if has != reads]
        return Setting(None, exempt, _limits(answer["panes"]))
    aim = target(await session_target(client, session))
    (answer,) = await client.rows(
        command("has-session", "-t", aim),
        command("set-option", "-t", aim, option, value),
        listing=command("display-message", "-t", aim),
        template=Template(session_id="#{session_id}", panes=_PANES),
    )
    return Setting(answer["session_id"], [], _limits(answer["panes"]))


def _limits(pairs: str) -> dict[str, int]:
    return {id: int(limit) for id, limit in _pairs(pairs).items()}


def _pairs(text: str) -> dict[str, str]:
    """``$0=1 $1=0 `` as a dictionary; a pane of several sessions is in it once."""
    return {id: value for id, _, value in (pair.partition("=") for pair in text.split())}
